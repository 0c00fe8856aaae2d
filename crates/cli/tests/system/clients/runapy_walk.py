"""Drives a server through the published Python client, unmodified, and lets the client's own models
judge the answers. The same walk runs through the plain, the threaded and the asynchronous client.

Usage: runapy_walk.py URL CREDENTIALS_FILE VARIANT

A walk is a generator: it yields what a call returns, and gets back the reply, whichever client made
it. What is wrong ends the program with the call and the difference.
"""

import asyncio
import datetime
import json
import os
import sys
import time
import urllib.request

from runai import models
from runai.api_client import ApiClient, AsyncApiClient, ThreadedApiClient
from runai.configuration import Configuration
from runai.exceptions import ApiException
from runai.runai_client import RunaiClient

URL, CREDENTIALS, VARIANT = sys.argv[1:4]
RUN = f"{VARIANT}-{os.getpid()}"
checked = 0


def fail(what):
    raise SystemExit(f"{VARIANT}: {what}")


def check(model, data, what):
    """`data` must be what the client's model accepts, and nothing known to it may get lost."""
    global checked
    try:
        parsed = getattr(models, model).from_dict(data)
    except Exception as error:  # whatever a model throws is a wrong answer
        fail(f"{what}: {model} refuses {json.dumps(data)}:\n{error}")
    if parsed is None:
        fail(f"{what}: {model} makes nothing of {json.dumps(data)}")
    checked += 1
    return data


def all_of(model, rows, what):
    if not isinstance(rows, list):
        fail(f"{what}: not a list: {rows!r}")
    return [check(model, row, what) for row in rows]


def equal(got, want, what):
    global checked
    if got != want:
        fail(f"{what}: got {got!r}, want {want!r}")
    checked += 1


def refused(status, outcome, what):
    """The outcome of a call that must be refused, with the published body."""
    if not isinstance(outcome, ApiException):
        fail(f"{what}: not refused: {outcome!r}")
    equal(outcome.status, status, what)
    # The asynchronous client has parsed it already.
    body = outcome.body if isinstance(outcome.body, dict) else json.loads(outcome.body)
    check("Error", body, what)
    equal(body["code"], status, f"{what}: the body's code")


class Attempt:
    """A call that may be refused: the walk gets the exception as its value."""

    def __init__(self, call):
        self.call = call


def walk(client):
    org, work = client.organizations, client.workloads

    clusters = (yield org.clusters.get_clusters()).data
    all_of("DisplayedCluster", clusters, "get_clusters")
    cluster = clusters[0]["uuid"]
    one = (yield org.clusters.get_cluster_by_uuid(cluster_uuid=cluster)).data
    equal(one["uuid"], cluster, "get_cluster_by_uuid")
    pools = (yield org.node_pools.get_nodepools()).data["nodepools"]
    all_of("Nodepool", pools, "get_nodepools")
    equal([pool["isDefault"] for pool in pools if pool["name"] == "default"], [True], "the default pool")
    departments = (yield org.departments.get_departments()).data["departments"]
    all_of("DepartmentForList", departments, "get_departments")
    nodes = (yield org.nodes.get_tenant_nodes()).data["nodes"]
    all_of("Node", nodes, "get_tenant_nodes")
    equal((yield org.nodes.count_tenant_nodes()).data["count"], len(nodes), "count_tenant_nodes")

    projects = {}
    for team in ("team-a", "team-b"):
        request = models.ProjectCreationRequest(
            name=f"{team}-{RUN}",
            clusterId=cluster,
            resources=[{"nodePool": {"id": pools[0]["id"]}, "gpu": {"deserved": 2, "limit": None}}],
        )
        reply = yield org.projects.create_project(project_creation_request=request)
        equal(reply.status_code, 201, "create_project")
        check_project(reply.data, "create_project")
        projects[team] = reply.data
        again = yield Attempt(lambda: org.projects.create_project(project_creation_request=request))
        refused(409, again, "create_project again")
    found = (yield org.projects.get_projects(filter_by=[f"name==team-a-{RUN}"])).data["projects"]
    equal([project["id"] for project in found], [projects["team-a"]["id"]], "get_projects by name")
    for project in (yield org.projects.get_projects(limit=500)).data["projects"]:
        check_project(project, "get_projects")
    missing = yield Attempt(lambda: org.projects.get_project(project_id="4000000000"))
    refused(404, missing, "get_project of none")

    # Over quota, then taken back: the published walk-through.
    made = {}
    for name, team, gpus in (("a1", "team-a", 2), ("a2", "team-a", 1), ("b1", "team-b", 1)):
        made[name] = (yield from train(client, cluster, projects[team]["id"], f"{name}-{RUN}", gpus))
    for name in made:
        yield from until(work, made[name], "Running")
    yield from look(client, made["a1"])
    second = yield from train(client, cluster, projects["team-b"]["id"], f"b2-{RUN}", 1)
    yield from until(work, second, "Running")
    # team-a holds 3 and deserves 2: exactly one of its two went.
    states = []
    for name in ("a1", "a2"):
        states.append((yield work.workloads.get_workload(workload_id=made[name])).data["phase"])
    equal(sorted(states), ["Pending", "Running"], "one of team-a was reclaimed")

    yield from lists(work, projects)
    yield from measured(client, cluster, projects["team-a"]["id"])
    yield from shapes(client, cluster, projects["team-a"]["id"])
    yield from credentials(client)
    yield from policies(client, projects["team-a"]["id"])
    yield from distributed(client, cluster, projects["team-a"]["id"])
    yield from manifests(client, cluster, projects["team-a"]["id"])
    yield from inference(client, cluster, projects["team-a"])

    training = work.trainings
    reply = yield training.suspend_training(workload_id=made["b1"])
    equal(reply.status_code, 202, "suspend_training")
    yield from until(work, made["b1"], "Stopped")
    equal((yield training.resume_training(workload_id=made["b1"])).status_code, 202, "resume_training")
    shown = (yield training.get_training(workload_id=made["b1"])).data
    check("Training1", shown, "get_training")
    equal((yield training.delete_training(workload_id=made["b1"])).status_code, 202, "delete_training")
    batch = models.WorkloadBatch(ids=[made["a1"], made["a2"], second, "no-such-id"], action="delete")
    result = (yield work.workloads_batch.batch_workloads(workload_batch=batch)).data
    check("BatchResponse", result, "batch_workloads")
    equal([one["id"] for one in result["failed"]], ["no-such-id"], "batch_workloads: failed")
    gone = yield Attempt(lambda: work.workloads.get_workload(workload_id="11111111-1111-4111-8111-111111111111"))
    refused(404, gone, "get_workload of none")
    yield from wait(
        lambda: work.workloads.get_workloads(filter_by=[f"name=@{RUN}"]),
        lambda data: not data["workloads"],
        "all workloads are gone",
    )
    yield from topologies(client, cluster)
    for project in projects.values():
        status = (yield org.projects.delete_project(project_id=project["id"])).status_code
        equal(status in (202, 204), True, f"delete_project answers {status}")


def check_project(project, what):
    """The generated `Project` is another object's; its parts are right."""
    for field in ("id", "name", "clusterId", "createdAt", "updatedAt", "status", "totalResources"):
        if field not in project:
            fail(f"{what}: the project lacks {field}: {project}")
    check("ProjectStatus", project["status"], f"{what}: status")
    check("TotalResources", project["totalResources"], f"{what}: totalResources")
    all_of("Resources", project["resources"], f"{what}: resources")
    check("ProjectEffective", project["effective"], f"{what}: effective")
    equal(type(project["id"]), str, f"{what}: ids are strings")


def train(client, cluster, project, name, gpus):
    request = models.TrainingCreationRequest(
        name=name,
        projectId=project,
        clusterId=cluster,
        spec=models.TrainingSpecSpec(
            image="gcr.io/run-ai-demo/quickstart",
            compute=models.SupersetSpecAllOfCompute(gpuDevicesRequest=gpus, cpuCoreRequest=0.1),
        ),
    )
    call = lambda: client.workloads.trainings.create_training1(training_creation_request=request)
    reply = yield call()
    equal(reply.status_code, 202, "create_training1")
    check("Training1", reply.data, "create_training1")
    refused(409, (yield Attempt(call)), "create_training1 again")
    return reply.data["workloadId"]


def look(client, workload):
    """Everything that can be asked about one workload."""
    work = client.workloads
    check("Workload", (yield work.workloads.get_workload(workload_id=workload)).data, "get_workload")
    pods = (yield work.pods.get_workload_pods(workload_id=workload)).data["pods"]
    all_of("Pod1", pods, "get_workload_pods")
    equal(len(pods), 1, "get_workload_pods")
    events = (yield work.events.get_workload_events(workload_id=workload)).data
    all_of("Event2", events["events"], "get_workload_events")
    check("HistoryRecord1", (yield work.events.get_workload_history(workload_id=workload)).data["records"][0],
          "get_workload_history")


def credentials(client):
    """Each kind is kept, shown without its values, changed and deleted."""
    api = client.workload_assets.credentials
    hush = "hush-5d2b"
    kinds = (
        ("AccessKey", "access_key", "access_keys", {"accessKeyId": "k", "secretAccessKey": hush}),
        ("DockerRegistry", "docker_registry", "docker_registries", {"url": "u", "user": "a", "password": hush}),
        ("GenericSecret", "generic_secret", "generic_secret", {"keyValuePairs": [{"key": "a", "value": hush}]}),
        ("NgcApiKey", "ngc_api_key", "ngc_api_key", {"ngc_api_key": hush}),
        ("Password", "password", "passwords", {"user": "a", "password": hush}),
    )
    for model, one, many, spec in kinds:
        request = getattr(models, f"{model}CreationRequest").from_dict(
            {"meta": {"name": f"{one}-{RUN}", "scope": "tenant"}, "spec": spec}
        )
        made = yield getattr(api, f"create_{one}")(**{f"{one}_creation_request": request})
        equal(made.status_code, 202, f"create_{one}")
        check(model, made.data, f"create_{one}")
        asset = made.data["meta"]["id"]
        read = (yield getattr(api, f"get_{one}_by_id")(asset_id=asset)).data
        check(model, read, f"get_{one}_by_id")
        listed = (yield getattr(api, f"list_{many}")(name=f"{one}-{RUN}")).data
        check(f"{model}ListResponse", listed, f"list_{many}")
        update = getattr(models, f"{model}UpdateRequest").from_dict({"meta": {"description": "d"}})
        changed = (yield getattr(api, f"update_{one}")(asset_id=asset, **{f"{one}_update_request": update})).data
        equal(changed["meta"]["description"], "d", f"update_{one}")
        everything = (yield api.list_credentials_assets(name=f"{one}-{RUN}")).data
        check("CredentialsListResponse", everything, "list_credentials_assets")
        equal(len(everything["entries"]), 1, "list_credentials_assets")
        equal(hush in json.dumps([made.data, read, listed, changed, everything]), False, f"{one} is secret")
        gone = (yield getattr(api, f"delete_{one}")(asset_id=asset)).status_code
        equal(gone, 202, f"delete_{one}")


def policies(client, project):
    """The policy of each kind of workload is set, changed, read, listed and taken away."""
    api = client.policies.policy
    meta = {"name": "p", "scope": "project", "projectId": int(project)}
    whose = {"scope": "project", "project_id": project}
    plain = {"defaults": {"workingDir": "/w"}, "rules": {"compute": {"gpuDevicesRequest": {"max": 2}}}}
    kinds = {one: (plain, "workingDir") for one in ("Training", "Workspace", "Inference")}
    kinds["Distributed"] = ({part: {"worker": said} for part, said in plain.items()}, "worker.workingDir")
    for model, (policy, field) in kinds.items():
        word = model.lower()
        request = getattr(models, f"{model}PolicyOverwriteRequestV2").from_dict({"meta": meta, "policy": policy})
        made = yield getattr(api, f"overwrite_{word}_policy_v2")(**{f"{word}_policy_overwrite_request_v2": request})
        check(f"{model}PolicyV2", made.data, f"overwrite_{word}_policy_v2")
        request = getattr(models, f"{model}PolicyChangeRequestV2").from_dict({"meta": meta, "reset": [field]})
        changed = yield getattr(api, f"update_{word}_policy_v2")(**{f"{word}_policy_change_request_v2": request})
        left = json.dumps(check(f"{model}PolicyV2", changed.data, f"update_{word}_policy_v2")["policy"])
        equal(("workingDir" in left, "gpuDevicesRequest" in left), (False, True), f"update_{word}_policy_v2")
        read = (yield getattr(api, f"get_{word}_policy_v2")(**whose)).data
        equal(read, changed.data, f"get_{word}_policy_v2")
    listed = (yield api.list_policies(**whose)).data
    check("PolicyListResponse", listed, "list_policies")
    equal(sorted(one["type"] for one in listed["policies"]), sorted(map(str.lower, kinds)), "list_policies")
    for word in map(str.lower, kinds):
        gone = (yield getattr(api, f"delete_{word}_policy")(**whose)).status_code
        equal(gone, 204, f"delete_{word}_policy")


def distributed(client, cluster, project):
    """Workers and a master that begin together, are stopped, begin again and are deleted."""
    work, api = client.workloads, client.workloads.distributed
    request = models.DistributedCreationRequest.from_dict({
        "name": f"dist-{RUN}", "projectId": project, "clusterId": cluster,
        "spec": {
            "image": "gcr.io/run-ai-demo/quickstart", "numWorkers": 1, "distributedFramework": "PyTorch",
            "compute": {"cpuCoreRequest": 0.1},
        },
    })
    made = yield api.create_distributed(distributed_creation_request=request)
    equal(made.status_code, 202, "create_distributed")
    workload = check("Distributed", made.data, "create_distributed")["workloadId"]
    yield from until(work, workload, "Running")
    pods = (yield work.pods.get_workload_pods(workload_id=workload)).data["pods"]
    equal(len(all_of("Pod1", pods, "get_workload_pods of a gang")), 2, "a master and a worker")
    for ask, phase in ((api.suspend_distributed, "Stopped"), (api.resume_distributed, "Running")):
        equal((yield ask(workload_id=workload)).status_code, 202, f"{phase}: asked")
        yield from until(work, workload, phase)
    check("Distributed", (yield api.get_distributed(workload_id=workload)).data, "get_distributed")
    equal((yield api.delete_distributed(workload_id=workload)).status_code, 202, "delete_distributed")


def manifests(client, cluster, project):
    """A job of Kubernetes runs, is suspended by its manifest and deleted."""
    work, api = client.workloads, client.workloads.workloads_v2
    container = {"name": "main", "image": "gcr.io/run-ai-demo/quickstart", "resources": {"requests": {"cpu": "100m"}}}
    manifest = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"job-{RUN}"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    request = models.WorkloadV2CreateRequest.from_dict(
        {"metadata": {"projectId": project, "clusterId": cluster}, "manifest": manifest}
    )
    made = yield api.create_workload_v2(workload_v2_create_request=request)
    equal(made.status_code, 202, "create_workload_v2")
    workload = check("WorkloadV2", made.data, "create_workload_v2")["metadata"]["id"]
    yield from until(work, workload, "Running")
    manifest["spec"]["suspend"] = True
    update = models.WorkloadV2UpdateRequest.from_dict({"metadata": {}, "manifest": manifest})
    yield api.update_workload_v2(workload_v2_id=workload, workload_v2_update_request=update)
    yield from until(work, workload, "Stopped")
    read = (yield api.get_workload_v2_by_id(workload_v2_id=workload)).data
    equal(check("WorkloadV2GetResponse", read, "get_workload_v2_by_id")["workload"]["rawManifest"], manifest, "it is kept")
    equal((yield api.delete_workload_v2(workload_v2_id=workload)).status_code, 202, "delete_workload_v2")


def inference(client, cluster, project):
    """A replica answers, what it is asked is measured, a change is a revision."""
    work, api = client.workloads, client.workloads.inferences
    name = f"svc-{RUN}"
    request = models.InferenceCreationRequest.from_dict({
        "name": name, "projectId": project["id"], "clusterId": cluster,
        "spec": {
            "image": "python", "command": "python3", "args": "-m http.server $(PORT)",
            "compute": {"cpuCoreRequest": 0.1},
            "servingPort": {"container": 8000, "authorizationType": "public"},
            "autoscaling": {"minReplicas": 1, "maxReplicas": 1},
        },
    })
    made = yield api.create_inference1(inference_creation_request=request)
    equal(made.status_code, 202, "create_inference1")
    workload = check("Inference1", made.data, "create_inference1")["workloadId"]
    yield from until(work, workload, "Running")
    pod = (yield work.pods.get_workload_pods(workload_id=workload)).data["pods"][0]["id"]
    now = datetime.datetime.now(datetime.timezone.utc)
    hours = lambda count: (now + datetime.timedelta(hours=count)).isoformat().replace("+00:00", "Z")
    span = dict(start=hours(-1), end=hours(1), number_of_samples=1000)
    kinds = ["THROUGHPUT", "LATENCY"]

    def asked():
        own = f"{name}--{project['name']}.localhost"
        with urllib.request.urlopen(urllib.request.Request(URL, headers={"Host": own})) as answer:
            equal(answer.status, 200, "the replica answers")
        return api.get_inference_workload_metrics(workload_id=workload, metric_type=kinds, **span)

    latencies = lambda data: [one["values"] for one in data["measurements"] if one["type"] == "LATENCY"][0]
    yield from wait(asked, latencies, "requests are measured")
    of_pod = lambda: api.get_inference_workload_pod_metrics(
        workload_id=workload, pod_id=pod, metric_type=kinds, **span
    )
    for what, call in (("get_inference_workload_metrics", asked), ("get_inference_workload_pod_metrics", of_pod)):
        data = check("MetricsResponse", (yield call()).data, what)
        equal([one["type"] for one in data["measurements"]], kinds, what)
        equal(all(float(value["value"]) > 0 for value in latencies(data)), True, f"{what}: it took time")
    change = models.InferenceUpdateRequest.from_dict({"spec": {"image": "other"}})
    equal((yield api.update_inference_spec(workload_id=workload, inference_update_request=change)).status_code, 202, "update")
    check("Inference1", (yield api.get_inference(workload_id=workload)).data, "get_inference")
    revisions = (yield work.revisions.get_inference_workload_revisions(workload_id=workload)).data["revisions"]
    equal(len(all_of("Revision", revisions, "get_inference_workload_revisions")), 2, "two revisions")
    equal((yield api.delete_inference(workload_id=workload)).status_code, 202, "delete_inference")


def topologies(client, cluster):
    """A topology is kept as long as a node pool names it; the pool is changed, listed and deleted."""
    api, pools = client.organizations.network_topologies, client.organizations.node_pools
    request = models.NetworkTopologyCreateRequest(name=f"t-{VARIANT}", levels=["rack"], clusterId=cluster)
    made = (yield api.create_network_topology(network_topology_create_request=request)).data
    topology = check("NetworkTopology", made, "create_network_topology")["id"]
    listed = (yield api.get_network_topologies()).data
    check("GetNetworkTopologies200Response", listed, "get_network_topologies")
    equal((yield api.get_network_topologies_count()).data["count"], 1, "get_network_topologies_count")
    fields = {"name": f"p-{VARIANT}", "labelKey": "k", "labelValue": "v", "clusterId": cluster,
              "networkTopologyId": topology}
    request = models.NodepoolCreateFields.from_dict(fields)
    made = yield pools.create_nodepool(nodepool_create_fields=request)
    equal(made.status_code, 201, "create_nodepool")
    pool = check("Nodepool", made.data, "create_nodepool")["id"]
    read = check("NetworkTopology", (yield api.get_network_topology_by_id(network_topology_id=topology)).data, "read")
    equal(read["nodePools"], [f"p-{VARIANT}"], "a topology tells its pools")
    refused(409, (yield Attempt(lambda: api.delete_network_topology(network_topology_id=topology))), "a topology in use")
    change = models.NodepoolUpdateFields.from_dict({"placementStrategy": {"cpu": "spread", "gpu": "spread"}})
    changed = (yield pools.patch_nodepool(nodepool_id=pool, nodepool_update_fields=change)).data
    equal(check("Nodepool", changed, "patch_nodepool")["placementStrategy"]["gpu"], "spread", "patch_nodepool")
    equal((yield pools.count_nodepools()).data["count"], 2, "count_nodepools")
    equal((yield pools.get_nodepool(nodepool_id=pool)).data, changed, "get_nodepool")
    equal((yield pools.delete_nodepool(nodepool_id=pool)).status_code in (202, 204), True, "delete_nodepool")
    gone = (yield api.delete_network_topology(network_topology_id=topology)).status_code
    equal(gone, 204, "delete_network_topology")


def lists(work, projects):
    """Pages, order, search, all eight operators, counts, and what is refused."""
    listing = work.workloads.get_workloads
    mine = f"name=@{RUN}"
    everything = (yield listing(sort_by="name", sort_order="asc", filter_by=[mine])).data["workloads"]
    all_of("Workload", everything, "get_workloads")
    names = [row["name"] for row in everything]
    equal(names, sorted(names), "get_workloads in order")
    equal(len(names), 4, "get_workloads")
    first = (yield listing(sort_by="name", filter_by=[mine], limit=3)).data
    equal(type(first.get("next")), int, "a first page has a next one")
    rest = (yield listing(sort_by="name", filter_by=[mine], limit=3, offset=first["next"])).data
    equal("next" in rest, False, "the last page has none")
    pages = first["workloads"] + rest["workloads"]
    equal([row["name"] for row in pages], names, "the pages together")
    team = f"projectName==team-b-{RUN}"
    for condition, want in (
        (f"name==a1-{RUN}", ["a1"]),
        (f"name!=a1-{RUN}", ["a2", "b1", "b2"]),
        ("name=^a", ["a1", "a2"]),
        (f"name=$1-{RUN}", ["a1", "b1"]),
        (f"name=@1-{RUN}", ["a1", "b1"]),
        (f"name!@1-{RUN}", ["a2", "b2"]),
        ("createdAt<=2000-01-01", []),
        ("createdAt>=2000-01-01", ["a1", "a2", "b1", "b2"]),
    ):
        rows = (yield listing(sort_by="name", filter_by=[mine, condition])).data["workloads"]
        equal([row["name"][:2] for row in rows], want, condition)
    equal((yield work.workloads.count_workloads(filter_by=[mine, team])).data["count"], 2, "count_workloads")
    equal(len((yield listing(search=f"b2-{RUN}")).data["workloads"]), 1, "search")
    refused(400, (yield Attempt(lambda: listing(filter_by=["name~a"]))), "an unknown operator")
    refused(400, (yield Attempt(lambda: listing(filter_by=["colour==red"]))), "an unknown field")
    pods = (yield work.pods.list_pods()).data["pods"]
    all_of("Pod1", pods, "list_pods")
    equal((yield work.pods.count_pods()).data["count"], len(pods), "count_pods")


def measured(client, cluster, project):
    """Series and values as of now. GPUs are simulated here: what they do is never measured."""
    org, work = client.organizations, client.workloads
    rows = (yield work.workloads.get_workloads(filter_by=[f"name=@{RUN}", "phase==Running"])).data["workloads"]
    workload = rows[0]["id"]
    pod = (yield work.pods.get_workload_pods(workload_id=workload)).data["pods"][0]["id"]
    node = (yield org.nodes.get_tenant_nodes()).data["nodes"][0]["id"]
    now = datetime.datetime.now(datetime.timezone.utc)
    span = dict(
        start=(now - datetime.timedelta(hours=1)).isoformat().replace("+00:00", "Z"),
        end=(now + datetime.timedelta(hours=1)).isoformat().replace("+00:00", "Z"),
        number_of_samples=100,
    )
    series = lambda data, kind: [one for one in data["measurements"] if one["type"] == kind]
    of_workload = lambda: work.workloads.get_workload_metrics(
        workload_id=workload, metric_type=["CPU_USAGE_CORES", "GPU_UTILIZATION", "GPU_ALLOCATION"], **span
    )
    yield from wait(of_workload, lambda data: series(data, "CPU_USAGE_CORES")[0]["values"], "CPU is measured")
    data = check("MetricsResponse", (yield of_workload()).data, "get_workload_metrics")
    equal(series(data, "GPU_UTILIZATION")[0]["values"], [], "a simulated GPU is not measured")
    equal(float(series(data, "GPU_ALLOCATION")[0]["values"][-1]["value"]) >= 1, True, "what it holds is known")
    kinds = lambda kind: [one.value for one in getattr(models, kind)]
    for model, kind, ask in (
        ("MetricsResponse", "WorkloadMetricType", lambda **q: work.workloads.get_workload_metrics(workload_id=workload, **q)),
        ("MetricsResponse", "PodMetricType", lambda **q: work.pods.get_workload_pod_metrics(workload_id=workload, pod_id=pod, **q)),
        ("MetricsResponse", "NodeMetricType", lambda **q: org.nodes.get_node_metrics(node_id=node, **q)),
        ("MetricsResponse", "OrgUnitMetricType", lambda **q: org.projects.get_project_metrics(project_id=project, **q)),
        ("MetricsResponse", "OrgUnitMetricType", lambda **q: org.departments.get_department_metrics(department_id="1", **q)),
        ("MetricsResponse", "MetricsType", lambda **q: org.node_pools.get_nodepool_metrics(cluster_uuid=cluster, nodepool_name="default", **q)),
        ("GroupedMetricsResponse", "MetricsType", lambda **q: org.clusters.get_cluster_metrics(cluster_uuid=cluster, **q)),
    ):
        data = check(model, (yield ask(metric_type=kinds(kind), **span)).data, kind)
        equal({one["type"] for one in data["measurements"]}, set(kinds(kind)), f"every {kind} is answered")
    grouped = org.clusters.get_cluster_metrics(
        cluster_uuid=cluster, metric_type=["ALLOCATED_GPU"], group_by="Project", **span
    )
    check("GroupedMetricsResponse", (yield grouped).data, "get_cluster_metrics by project")
    for kind, groups, ask in (
        ("NodeTelemetryType", ["Node", "ClusterId"], org.nodes.get_node_telemetry),
        ("WorkloadTelemetryType", ["Phase"], work.workloads.get_workloads_telemetry),
        ("OrgUnitTelemetryType", ["ParentId"], org.projects.get_projects_telemetry),
        ("OrgUnitTelemetryType", ["ClusterId"], org.departments.get_departments_telemetry),
    ):
        for one in kinds(kind):
            check("TelemetryResponse", (yield ask(telemetry_type=one)).data, one)
            check("TelemetryResponse", (yield ask(telemetry_type=one, group_by=groups)).data, one)
    refused(400, (yield Attempt(lambda: org.nodes.get_node_telemetry(telemetry_type="COLOUR"))), "an unknown value")


def shapes(client, cluster, project):
    """Answers about less usual workloads: a fraction, CPU only, a workspace, one that fails."""
    work = client.workloads
    compute = models.SupersetSpecAllOfCompute
    specs = {
        "half": compute(gpuDevicesRequest=1, gpuRequestType="portion", gpuPortionRequest=0.5),
        "memory": compute(gpuDevicesRequest=1, gpuRequestType="memory", gpuMemoryRequest="1G"),
        "cpu": compute(cpuCoreRequest=0.1, cpuMemoryRequest="10M"),
    }
    ids = []
    for name, wanted in specs.items():
        request = models.WorkspaceCreationRequest(
            name=f"{name}-{RUN}",
            projectId=project,
            clusterId=cluster,
            spec=models.WorkspaceSpecSpec(image="gcr.io/run-ai-demo/quickstart", compute=wanted),
        )
        reply = yield work.workspaces.create_workspace1(workspace_creation_request=request)
        check("Workspace1", reply.data, f"create_workspace1 {name}")
        ids.append(reply.data["workloadId"])
    yield from until(work, ids[2], "Running")
    for workload in ids:
        check("Workload", (yield work.workloads.get_workload(workload_id=workload)).data, "get_workload")
        shown = (yield work.workspaces.get_workspace(workload_id=workload)).data
        check("Workspace1", shown, "get_workspace")
    all_of("Pod1", (yield work.pods.list_pods()).data["pods"], "list_pods")
    batch = models.WorkloadBatch(ids=ids, action="delete")
    check("BatchResponse", (yield work.workloads_batch.batch_workloads(workload_batch=batch)).data, "batch")


def until(work, workload, phase):
    ask = lambda: work.workloads.get_workload(workload_id=workload)
    yield from wait(ask, lambda data: data["phase"] == phase, f"{workload} is {phase}")


def wait(ask, reached, what):
    last = None
    for _ in range(2400):
        last = (yield ask()).data
        if reached(last):
            return
        time.sleep(0.05)
    fail(f"never: {what}; last seen: {json.dumps(last)}")


def configuration():
    with open(CREDENTIALS, encoding="utf-8") as file:
        known = json.load(file)
    return Configuration(
        client_id=known["clientId"],
        client_secret=known["clientSecret"],
        runai_base_url=URL,
        retry_enabled=False,
    )


def drive(steps, resolve):
    """Runs a walk with a client whose calls `resolve` turns into replies."""
    value, error = None, None
    while True:
        try:
            asked = steps.throw(error) if error else steps.send(value)
        except StopIteration:
            return
        value, error = None, None
        attempt = isinstance(asked, Attempt)
        try:
            value = resolve(asked.call() if attempt else asked)
        except ApiException as refusal:
            value, error = (refusal, None) if attempt else (None, refusal)


def main():
    if VARIANT == "sync":
        drive(walk(RunaiClient(ApiClient(configuration()))), lambda reply: reply)
    elif VARIANT == "threaded":
        drive(walk(RunaiClient(ThreadedApiClient(configuration()))), lambda result: result.get())
    elif VARIANT == "async":
        with asyncio.Runner() as runner:

            async def begin():
                return await AsyncApiClient(configuration()).__aenter__()

            async def end(client):
                await client.__aexit__(None, None, None)

            async def reply(call):
                return await call

            opened = runner.run(begin())
            drive(walk(RunaiClient(opened)), lambda call: runner.run(reply(call)))
            runner.run(end(opened))
    else:
        fail("is no variant; sync, threaded, async")
    print(f"{VARIANT}: {checked} answers are as the client's models want them")


main()
