//! Checks with frameworks. Owns: the programs, in Python. Does not know about: how they are
//! started.

/// Name of the check, the Python module that it needs, the settings of its allocator, and the
/// program.
pub(crate) const FRAMEWORKS: [[&str; 4]; 7] = [
    ["PyTorch", "torch", "", TORCH],
    ["PyTorch, expandable segments", "torch", "expandable_segments:True", TORCH],
    ["PyTorch, cudaMallocAsync", "torch", "backend:cudaMallocAsync", TORCH],
    ["PyTorch, CUDA graphs", "torch", "", TORCH_GRAPH],
    ["NCCL", "torch", "", TORCH_NCCL],
    ["JAX, default settings", "jax", "", JAX],
    ["TensorFlow, default settings", "tensorflow", "", TENSORFLOW],
];

const TORCH: &str = "
import sys, torch
free, total = torch.cuda.mem_get_info()
assert total <= int(sys.argv[1]) and torch.cuda.get_device_properties(0).total_memory <= int(sys.argv[1])
held = []
try:
    while True: held.append(torch.empty(256 << 20, dtype=torch.uint8, device='cuda'))
except torch.OutOfMemoryError: pass
blocks = len(held)
held.clear(); torch.cuda.empty_cache()
assert torch.ones(1000, device='cuda').sum().item() == 1000
print(blocks * 256, 'MiB until OutOfMemoryError, then it goes on')
";

const TORCH_GRAPH: &str = "
import torch
x = torch.ones(1 << 20, device='cuda')
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3): y = (x * 2).sum()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph): y = (x * 2).sum()
for _ in range(100): graph.replay()
torch.cuda.synchronize()
assert y.item() == 2 << 20
print('100 replays')
";

const TORCH_NCCL: &str = "
import os, torch, torch.distributed as d
os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29517', RANK='0', WORLD_SIZE='1')
d.init_process_group('nccl')
x = torch.ones(1 << 20, device='cuda')
d.all_reduce(x)
assert x.sum().item() == 1 << 20
print('all_reduce of one process')
";

const JAX: &str = "
import sys, jax
assert float(jax.numpy.ones(1000).sum()) == 1000
limit = jax.devices()[0].memory_stats()['bytes_limit']
assert limit <= int(sys.argv[1]), limit
print(limit >> 20, 'MiB taken at the start')
";

const TENSORFLOW: &str = "
import tensorflow as tf
assert tf.config.list_physical_devices('GPU')
assert float(tf.reduce_sum(tf.ones([1000]))) == 1000
print('its first allocation was granted')
";

/// Prints what a launch of a small kernel takes in nanoseconds, and a step of a training in
/// microseconds.
pub(crate) const TORCH_TIMES: &str = "
import time, torch
def least(do, count):
    for _ in range(20): do()
    times = []
    for _ in range(5):
        torch.cuda.synchronize(); begin = time.perf_counter()
        for _ in range(count): do()
        torch.cuda.synchronize(); times.append((time.perf_counter() - begin) / count)
    return min(times)
x = torch.zeros(16, device='cuda')
launch = least(lambda: x.add_(1), 20000)
layers = [layer for _ in range(8) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.Adam(model.parameters())
data = torch.randn(256, 512, device='cuda')
def step():
    optimizer.zero_grad(); model(data).square().mean().backward(); optimizer.step()
print(f'{launch * 1e9:.0f} {least(step, 100) * 1e6:.1f}')
";
