//! Baselines for packing: published packing algorithms, and the mixes of pods they are measured on.

mod mixes;
mod published;

pub use mixes::{Few, Mix};
pub use published::Published;

#[cfg(test)]
mod tests {
    use sim::trace::{read_nodes, read_pods};

    use super::{Few, Mix, Published};

    const NODES: &str =
        "sn,cpu_milli,memory_mib,gpu,model\nsmall,8000,9,1,T4\nlarge,64000,9,8,G2\n";
    const PODS: &str = "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1,1,500\n1000,1,1,1000\n\
        1000,1,8,1000\n1000,1,0,0\n";

    #[test]
    fn a_mix_binds_pods_only_to_models_that_they_could_use() {
        let (nodes, pods) = (read_nodes(NODES).unwrap(), read_pods(PODS).unwrap());
        let mix = Mix { bound_percent: 100, ..Mix::published("x") };
        let mut models = Vec::new();
        for seed in 0..50 {
            let drawn = mix.draw(&nodes, &pods, seed);
            assert_eq!(drawn, mix.draw(&nodes, &pods, seed), "the same seed, the same mix");
            assert_eq!(drawn[2].models, ["G2"], "no node with T4 has 8 GPUs");
            assert!(drawn[3].models.is_empty(), "it asks for no GPU");
            models.extend(drawn[0].models.clone());
        }
        assert!(models.iter().any(|model| model == "T4") && models.iter().any(|m| m == "G2"));
    }

    #[test]
    fn a_mix_leaves_out_only_pods_of_one_sort() {
        let (nodes, pods) = (read_nodes(NODES).unwrap(), read_pods(PODS).unwrap());
        let left = |few| {
            let mix = Mix { without: Some((few, 100)), ..Mix::published("x") };
            mix.draw(&nodes, &pods, 1)
        };
        assert_eq!(left(Few::SingleGpu), pods[2..]);
        assert_eq!(left(Few::WholeGpu), [pods[0].clone(), pods[3].clone()]);
    }

    #[test]
    fn best_fit_and_fgd_leave_the_large_node_to_the_large_pod() {
        let (nodes, pods) = (read_nodes(NODES).unwrap(), read_pods(PODS).unwrap());
        // The requests equal the capacity: one GPU, which would fit on either node, and eight.
        for way in [Published::BestFit, Published::Fgd] {
            let replay = way.replay(&nodes, &pods[1..3], 3);
            assert_eq!(replay.capacity_millis, 9000);
            assert_eq!(replay.allocated_millis.last(), Some(&9000), "{way:?}");
        }
    }
}
