#!/usr/bin/env python3
"""Makes a database with something of everything in it, and notes what its server says of it.

    make.py ELASTANE OUT

ELASTANE is the program of the revision in question, OUT the beginning of the names of two files:
OUT.sql has every row of the database, OUT.json the answers of the REST interface. Needs sqlite3,
and in DOCKER_HOST a Docker daemon.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PORT = 7390
# An image with the programs of busybox, which the Docker daemon has already.
IMAGE = "elastane-test:latest"
NODES = "1x4x16GiB@zone=a,rack=r1+1x4x40GiB@zone=b,rack=r2,gpu=big"
# Routes whose answers are of the moment, of the program, or not JSON.
SKIPPED = ("/healthz", "/metrics", "/elastane/v1/docs", "/elastane/v1/openapi.json",
           "/elastane/v1/events", "/elastane/v1/snapshot", "/elastane/v1/status", "/v1/k8s/",
           "/api/v1/cli", "/api/v1/authorization/permissions", "/api/v1/authorization/roles",
           "/api/v1/security", "/elastane/v1/login", "/elastane/v1/usage/csv")


class Server:
    def __init__(self, program, state):
        self.program, self.state = program, state
        self.url = f"http://127.0.0.1:{PORT}"
        self.process = subprocess.Popen(
            [program, "up", "--state-dir", state, "--listen", f"127.0.0.1:{PORT}",
             "--nodes", NODES, "--runtime", "docker", "--cluster-name", "local"],
            stdout=subprocess.DEVNULL)
        until(lambda: self.status("GET", "/healthz") == 200)
        self.token = pathlib.Path(state, "token").read_text().strip()

    def send(self, method, path, body=None, token=None):
        request = urllib.request.Request(self.url + path, method=method)
        token = token or getattr(self, "token", None)
        if token:
            request.add_header("authorization", f"Bearer {token}")
        data = None
        if body is not None:
            request.add_header("content-type", "application/json")
            data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 0, b""

    def status(self, method, path):
        return self.send(method, path)[0]

    def __call__(self, method, path, body=None, token=None):
        status, text = self.send(method, path, body, token)
        if not 200 <= status < 300:
            sys.exit(f"{method} {path} {json.dumps(body)}: {status} {text.decode()}")
        return json.loads(text) if text.startswith((b"{", b"[")) else None


def until(true, what="the server"):
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    sys.exit(f"waited too long for {what}")


def organisation(send, cluster):
    def label(node, labels):
        send("PUT", f"/elastane/v1/nodes/{node}/labels", {"labels": labels})

    net = send("POST", "/api/v1/network-topologies",
               {"name": "net", "levels": ["zone", "rack"], "clusterId": cluster})["id"]
    send("PATCH", "/api/v1/node-pools/1", {"networkTopologyId": net})
    label("node-2", {"zone": "b", "rack": "r2", "gpu": "big", "run.ai/type": "large"})
    label("node-1", {"zone": "a", "rack": "r1"})
    big = send("POST", "/api/v1/node-pools", {
        "name": "big", "labelKey": "gpu", "labelValue": "big", "clusterId": cluster,
        "placementStrategy": {"gpu": "spread", "cpu": "binpack"}})["id"]

    def share(pool, deserved, limit=None, weight=None, **more):
        gpu = {"deserved": deserved}
        if limit is not None:
            gpu["limit"] = limit
        if weight is not None:
            gpu["overQuotaWeight"] = weight
        return {"nodePool": {"id": pool, "name": "big" if pool == big else "default"},
                "gpu": gpu, **more}

    department = send("POST", "/api/v1/org-unit/departments", {
        "name": "research", "clusterId": cluster, "description": "all of research",
        "resources": [share("1", 4, 4, 1), share(big, 2)]})["id"]
    send("POST", "/api/v1/org-unit/departments",
         {"name": "idle", "clusterId": cluster, "resources": []})
    gone = send("POST", "/api/v1/org-unit/departments",
                {"name": "closed", "clusterId": cluster, "resources": []})["id"]
    send("DELETE", f"/api/v1/org-unit/departments/{gone}")
    projects = {}
    for name, more in [
        ("team-a", {"resources": [share("1", 2, 3.5, 3, priority="High",
                                        cpu={"deserved": 4000, "limit": 32000},
                                        memory={"deserved": 4096, "units": "Mib"}),
                                  share(big, 1, weight=0)],
                    "defaultNodePools": ["default", "big"], "parentId": department,
                    "description": "the first"}),
        ("team-b", {"resources": [share("1", 1.5)], "parentId": department,
                    "nodeTypes": {"training": ["large"]}}),
        ("team-c", {"resources": [share("1", 0)],
                    "schedulingRules": {"trainingJobTimeLimitSeconds": 86400,
                                        "interactiveJobMaxIdleDurationSeconds": 7200,
                                        "interactiveJobTimeLimitSeconds": 80000}}),
        ("closed", {"resources": [share("1", 1)]}),
    ]:
        body = {"name": name, "clusterId": cluster, **more}
        projects[name] = send("POST", "/api/v1/org-unit/projects", body)["id"]
    send("DELETE", f"/api/v1/org-unit/projects/{projects['closed']}")
    return projects, department


def people(send, server, projects, department):
    for email in ("ann@example.org", "ben@example.org", "leaver@example.org"):
        user = send("POST", "/api/v1/users", {"email": email, "resetPassword": False})
        granted = send("POST", "/api/v1/token", {
            "grantType": "password", "username": email,
            "password": user["tempPassword"]})
    program = send("POST", "/api/v1/service-accounts", {"name": "ci"})
    rule = "/api/v1/authorization/access-rules"
    for subject, kind, role, scope, ident in [
        ("ann@example.org", "user", 5, "project", projects["team-a"]),
        ("ben@example.org", "user", 4, "department", department),
        (program["clientId"], "service-account", 1, "tenant", ""),
        ("leaver@example.org", "user", 5, "project", projects["team-b"]),
    ]:
        if ident == "":
            ident = send("GET", "/api/v1/clusters")[0]["tenantId"]
        made = send("POST", rule, {"subjectId": subject, "subjectType": kind, "roleId": role,
                                   "scopeType": scope, "scopeId": str(ident)})
        if subject.startswith("leaver"):
            send("DELETE", f"{rule}/{made['id']}")
    send("POST", "/api/v1/token", {
        "grantType": "client_credentials", "clientId": program["clientId"],
        "clientSecret": program["clientSecret"]})
    send("POST", "/api/v1/access-keys", {"name": "laptop"}, granted["accessToken"])
    # Something for the audit log that is refused.
    server.send("POST", "/api/v1/users", {"email": "not-an-address"})
    server.send("GET", "/api/v1/users", token="not-a-token")
    send("PUT", "/elastane/v1/usage/prices",
         {"currency": "EUR", "prices": [{"gpuModel": "simulated", "perGpuHour": 1.5}]})
    send("POST", "/api/v1/workload-types", {
        "name": "RayJob", "group": "ray.io", "categoryId": "train", "priorityId": "low"})
    return program["clientSecret"]


def assets(send, projects):
    ids = {}

    def keep(path, name, spec, scope="tenant"):
        meta = {"name": name, "scope": scope}
        if scope == "project":
            meta["projectId"] = int(projects["team-a"])
        made = send("POST", f"/api/v1/asset/{path}", {"meta": meta, "spec": spec})
        ids[name] = made["meta"]["id"]

    keep("compute", "two-gpus", {"gpuDevicesRequest": 2, "cpuMemoryRequest": "1G"})
    keep("compute", "quarter", {"gpuDevicesRequest": 1, "gpuRequestType": "portion",
                                "gpuPortionRequest": 0.25}, "project")
    keep("environment", "shell", {"image": IMAGE, "imagePullPolicy": "IfNotPresent",
                                  "command": "sleep", "args": "100000",
                                  "environmentVariables": [{"name": "FROM", "value": "asset"}]})
    keep("datasource/nfs", "nas", {"server": "s", "path": "/a", "mountPath": "/b"})
    keep("datasource/pvc", "claim", {"path": "/b", "existingPvc": True, "claimName": "c"})
    keep("datasource/s3", "bucket", {"bucket": "b", "path": "/b", "url": "https://s3"})
    keep("datasource/git", "code", {"repository": "https://g/r", "path": "/b"})
    keep("datasource/host-path", "host", {"path": "/a", "mountPath": "/b"})
    keep("datasource/config-map", "settings", {"configMap": "conf", "mountPath": "/b"})
    keep("credentials/password", "login", {"user": "ann", "password": "hush hush"})
    keep("credentials/access-key", "s3-key", {"accessKeyId": "AK", "secretAccessKey": "hush hush"})
    keep("credentials/docker-registry", "registry",
         {"url": "nvcr.io", "user": "ann", "password": "hush hush"})
    keep("credentials/generic-secret", "generic",
         {"keyValuePairs": [{"key": "a", "value": "hush hush"}]})
    keep("credentials/ngc-api-key", "ngc", {"ngc_api_key": "hush-hush"})
    keep("datasource/secrets", "secret-files",
         {"credentialAssetId": ids["generic"], "mountPath": "/b", "defaultMode": "0400"})
    keep("datasource/nfs", "old-nas", {"server": "s", "path": "/a", "mountPath": "/b"})
    send("DELETE", f"/api/v1/asset/datasource/nfs/{ids['old-nas']}")
    team = projects["team-a"]
    for name, data in [("conf", {"train.yaml": "lr: 1", "y": ""}), ("other", {"x": "1"})]:
        send("PUT", f"/elastane/v1/projects/{team}/config-maps/{name}", {"data": data})
    of = {"scopeType": "project", "scopeId": str(team)}
    for path, spec in [("trainings", {"image": IMAGE, "args": "x", "assets": {
                            "compute": ids["two-gpus"]}}),
                       ("workspaces", {"image": "i"}), ("distributed", {"numWorkers": 2}),
                       ("inferences", {"servingPort": {"container": 80}})]:
        made = send("POST", f"/api/v1/workload-templates/{path}",
                    {"meta": {"name": f"t-{path}", **of}, "spec": spec})
        ids[f"t-{path}"] = made["meta"]["id"]
    for kind, policy in [
        ("trainings", {"defaults": {"workingDir": "/tmp"},
                       "rules": {"compute": {"gpuDevicesRequest": {"max": 64}}}}),
        ("workspaces", {"defaults": {"environmentVariables": {"instances": [
            {"name": "POLICY", "value": "1"}]}}}),
        ("distributed", {"rules": {"worker": {"numWorkers": {"max": 100}}}}),
        ("inferences", {"defaults": {"workingDir": "/tmp"}}),
    ]:
        send("PUT", f"/api/v2/policy/{kind}",
             {"meta": {"name": f"p-{kind}", "scope": "tenant"}, "policy": policy})
    return ids


SLEEP = {"image": IMAGE, "command": "sleep", "args": "100000", "workingDir": "/tmp"}


def workloads(send, cluster, projects, ids):
    made = {}

    def submit(kind, name, spec, project="team-a", **more):
        spec = {key: value for key, value in {**SLEEP, **spec}.items() if value is not None}
        body = {"name": name, "projectId": str(projects[project]), "clusterId": cluster,
                "spec": spec, **more}
        made[name] = (kind, send("POST", f"/api/v1/workloads/{kind}", body)["workloadId"])

    def of_gpu(**compute):
        return {"compute": compute}

    submit("trainings", "whole", {
        **of_gpu(gpuDevicesRequest=1, cpuCoreRequest=0.5, cpuMemoryRequest="100M",
                 cpuCoreLimit=2, cpuMemoryLimit="1G", largeShmRequest=True),
        "commandLine": "runai submit whole -g 1", "priorityClass": "high", "backoffLimit": 3,
        "labels": [{"name": "team", "value": "x"}],
        "annotations": [{"name": "note", "value": "y"}],
        "environmentVariables": [
            {"name": "LR", "value": "0.1"},
            {"name": "KEY", "secret": {"name": "generic", "key": "a"}},
            {"name": "CONF", "configMap": {"name": "conf", "key": "train.yaml"}}],
        "terminationGracePeriodSeconds": 1, "terminateAfterPreemption": True,
        "autoDeletionTimeAfterCompletionSeconds": 3600000})
    submit("trainings", "share", of_gpu(gpuDevicesRequest=1, gpuRequestType="portion",
                                        gpuPortionRequest=0.25))
    submit("trainings", "memory", of_gpu(gpuDevicesRequest=1, gpuRequestType="memory",
                                         gpuMemoryRequest="4G"), "team-b")
    submit("trainings", "migs", of_gpu(extendedResources=[
        {"resource": "nvidia.com/mig-1g.5gb", "quantity": "2"}]))
    submit("trainings", "elastic", {**of_gpu(gpuDevicesRequest=2), "elastic": True,
                                    "nodePools": ["big"]})
    submit("trainings", "too-large", of_gpu(gpuDevicesRequest=64))
    submit("trainings", "many", {"completions": 3, "parallelism": 2, "command": "sh",
                                 "args": "-c 'sleep 100000'"})
    submit("trainings", "good", {"command": "true", "args": None})
    submit("trainings", "bad", {"command": "false", "args": None, "backoffLimit": 0})
    submit("trainings", "gone", {})
    submit("trainings", "stopped", of_gpu(gpuDevicesRequest=1), "team-b")
    submit("trainings", "placed", {
        **of_gpu(gpuDevicesRequest=1),
        "nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["b"]}]}]},
        "tolerations": [{"key": "busy", "operator": "Exists", "effect": "NoSchedule"}],
        "podAffinity": {"type": "Preferred", "key": "zone"},
        "preemptibility": "non-preemptible"}, "team-b", )
    submit("trainings", "from-assets", {"assets": {
        "compute": ids["quarter"], "environment": ids["shell"]}})
    body = {"name": "from-template", "projectId": str(projects["team-a"]), "clusterId": cluster,
            "templateId": ids["t-trainings"], "spec": {"command": "sleep", "args": "1000"}}
    made["from-template"] = ("trainings", send("POST", "/api/v1/workloads/trainings",
                                               body)["workloadId"])
    submit("workspaces", "notebook", {
        **of_gpu(gpuDevicesRequest=1, gpuRequestType="portion", gpuPortionRequest=0.5),
        "stdin": True, "tty": True, "restartPolicy": "OnFailure",
        "exposedUrls": [{"container": 8888, "name": "jupyter",
                         "authorizationType": "authenticatedUsers"}],
        "relatedUrls": [{"url": "https://docs.example", "type": "Docs", "name": "docs"}]})
    submit("workspaces", "crashing", {"command": "false", "args": None,
                                      "restartPolicy": "OnFailure"})
    submit("distributed", "torch", {
        **of_gpu(gpuDevicesRequest=1, gpuRequestType="portion", gpuPortionRequest=0.2),
        "distributedFramework": "PyTorch", "numWorkers": 2, "minReplicas": 1, "maxReplicas": 2,
        "annotations": [{"name": "kai.scheduler/topology-preferred-placement", "value": "rack"}]},
        masterSpec={"compute": {"gpuDevicesRequest": 0}, "image": IMAGE, "command": "sleep",
                    "args": "9999"})
    submit("distributed", "mpi", {
        "distributedFramework": "MPI", "numWorkers": 2, "slotsPerWorker": 4,
        "mpiLauncherCreationPolicy": "WaitForWorkersReady", "cleanPodPolicy": "All"}, "team-c")
    submit("inferences", "svc", {
        "command": "httpd", "args": "-f -p 8000",
        "servingPort": {"container": 8000, "authorizationType": "public"},
        "autoscaling": {"minReplicas": 1, "maxReplicas": 2, "metric": "throughput",
                        "metricThreshold": 10}})
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "manifest"},
           "spec": {"backoffLimit": 1, "template": {"spec": {
               "restartPolicy": "Never", "containers": [{
                   "name": "c", "image": IMAGE, "command": ["sleep"], "args": ["100000"],
                   "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}
    answer = send("POST", "/api/v2/workloads", {
        "manifest": job, "metadata": {"projectId": str(projects["team-c"])}})["workload"]
    made["manifest"] = ("manifest", answer["metadata"]["id"])
    send("POST", "/api/v1/workloads/trainings", {
        "name": "around", "projectId": str(projects["team-a"]), "clusterId": cluster,
        "spec": {**SLEEP, "ports": [{"container": 80, "external": 18080,
                                     "serviceType": "NodePort"}],
                 "storage": {
                     "pvc": [{"claimName": "data", "path": "/data", "readOnly": False}],
                     "git": [{"repository": "http://127.0.0.1:1/x", "branch": "main",
                              "path": "/code"}],
                     "emptyDirVolume": [{"path": "/scratch", "medium": "Memory",
                                         "sizeLimit": "1M"}],
                     "configMapVolume": [{"configMap": "conf", "mountPath": "/etc/conf"}],
                     "secretVolume": [{"secret": "generic", "mountPath": "/etc/gs"}]}}})
    return made


def settle(send, server, made):
    """Brings every workload into the state it is there for."""
    def phase(name):
        return send("GET", f"/api/v1/workloads/{made[name][1]}")["phase"]

    def reaches(name, *phases):
        until(lambda: phase(name) in phases, f"{name} to be {phases}, it is {phase(name)}")

    reaches("good", "Completed")
    reaches("bad", "Failed")
    for name in ("whole", "share", "memory", "notebook", "torch", "stopped", "svc", "mpi"):
        reaches(name, "Running")
    send("POST", f"/api/v1/workloads/trainings/{made['stopped'][1]}/suspend")
    reaches("stopped", "Stopped")
    reaches("gone", "Running")
    send("DELETE", f"/api/v1/workloads/trainings/{made['gone'][1]}")
    until(lambda: server.status("GET", f"/api/v1/workloads/{made['gone'][1]}") == 404)
    # A second revision of the inference, and the first is gone.
    one = f"/api/v1/workloads/inferences/{made['svc'][1]}"
    send("PATCH", one, {"spec": {"environmentVariables": [{"name": "REVISION", "value": "2"}]}})
    until(lambda: len(send("GET", f"{one}/revisions")["revisions"]) >= 2, "a second revision")
    reaches("svc", "Running")
    # A GPU that fails and heals again, under a workload that goes elsewhere.
    gpu = "/elastane/v1/nodes/node-1/gpus/3/simulated-failure"
    send("PUT", gpu)
    time.sleep(2)
    send("DELETE", gpu)
    send("PUT", "/elastane/v1/nodes/node-2/gpus/3/simulated-failure")
    # Samples and the ledger have steps of a minute.
    time.sleep(float(os.environ.get("SETTLE", "130")))


def note(send, server, made, projects):
    """What the server answers to every list, and to each object in it."""
    described = send("GET", "/elastane/v1/openapi.json")["paths"]
    plain = [path for path, verbs in described.items()
             if "get" in verbs and "{" not in path and not path.startswith(SKIPPED)]
    paths = sorted(plain)
    for kind, ident in sorted(made.values()):
        paths += [f"/api/v1/workloads/{ident}{part}" for part in ("", "/history")]
        typed = f"/api/v1/workloads/{kind}/{ident}"
        paths.append(f"/api/v2/workloads/{ident}" if kind == "manifest" else typed)
        if kind == "inferences":
            paths.append(f"{typed}/revisions")
    for ident in sorted(projects.values(), key=str):
        paths.append(f"/api/v1/org-unit/projects/{ident}")
        paths.append(f"/elastane/v1/projects/{ident}/config-maps")
    answers = {}
    for path in paths:
        status, text = server.send("GET", path)
        if status == 200 and text.startswith((b"{", b"[")):
            answers[path] = json.loads(text)
    return answers


def end_workloads(program, state):
    """Workloads outlive their server: another one ends them."""
    send = server = Server(program, state)
    living = send("GET", "/api/v1/workloads?limit=500")["workloads"]
    kinds = {"Training": "trainings", "Workspace": "workspaces", "Distributed": "distributed",
             "Inference": "inferences"}
    for one in living:
        server.send("DELETE", f"/api/v1/workloads/{kinds[one['type']]}/{one['id']}")
    until(lambda: send("GET", "/api/v1/workloads/count")["count"] == 0, "the end of all")
    server.process.terminate()
    server.process.wait()


def fill(program, state):
    """Puts something of everything into a state and stops its server in good order."""
    send = server = Server(program, state)
    try:
        cluster = send("GET", "/api/v1/clusters")[0]["uuid"]
        projects, department = organisation(send, cluster)
        secret = people(send, server, projects, department)
        ids = assets(send, projects)
        made = workloads(send, cluster, projects, ids)
        settle(send, server, made)
        answers = note(send, server, made, projects)
        return {"at_ms": int(time.time() * 1000), "client_secret": secret, "answers": answers}
    finally:
        server.process.terminate()
        server.process.wait()


def main():
    program, out = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as state:
        try:
            left = fill(program, state)
            left["credentials_key"] = pathlib.Path(state, "credentials-key").read_text()
            dump = subprocess.run(["sqlite3", f"{state}/elastane.db", ".dump"], check=True,
                                  capture_output=True, text=True).stdout
        finally:
            end_workloads(program, state)
    out.with_suffix(".sql").write_text(dump)
    # One line for each answer.
    text = json.dumps(left, sort_keys=True).replace(', "/', ',\n"/')
    out.with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
