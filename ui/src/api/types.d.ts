// Types of the API, made from our OpenAPI document (`/elastane/v1/openapi.json`)
// by `cargo xtask ui-types`.

export interface ActionsSupport {
  delete: boolean;
  suspend: boolean;
}

export interface Advice {
  ask?: string | null;
  change: AdvisedChange;
  commands?: Array<string>;
  disturbs: number;
  kind: string;
  line?: number | null;
  message: string;
  request?: AdvisedRequest | null;
  to?: string | null;
}

export type AdvisedChange = { gpus: number; kind: "fewer_gpus"; } | { gpu_millis: number; kind: "smaller_share"; } | { gpu_memory_bytes: number; kind: "less_gpu_memory"; } | { gpu_memory_bytes: number; kind: "part_of_gpu"; } | { kind: "fewer_pods"; pods: number; set?: string | null; } | { cpu_millis: number; kind: "less_cpu"; } | { kind: "less_memory"; memory_bytes: number; } | { kind: "elastic"; } | { kind: "preemptible"; } | { kind: "priority"; priority_class: string; } | { kind: "without_selector"; label: string; } | { affinity: string; kind: "without_affinity"; } | { kind: "without_pod_affinity"; } | { instead_of: Array<string>; kind: "node_pool"; node_pool: string; } | { kind: "tolerate"; taint: Taint; } | { kind: "ungate"; } | { kind: "wait"; until: Time; } | { kind: "end"; workload: WorkloadName; } | { kind: "quota"; raises: Array<Raise>; } | { kind: "limit"; raises: Array<Raise>; } | { kind: "uncordon"; node: string; } | { kind: "untaint"; node: string; taint: Taint; } | { kind: "label"; labels: Record<string, string>; node: string; } | { kind: "more_nodes"; node: string; nodes: number; } | { kind: "repair"; repairs: Array<RepairedGpus>; };

export interface AdvisedRequest {
  body?: Record<string, unknown> | null;
  method: string;
  path: string;
}

export interface AllocatedResources {
  cpu: Millis;
  cpuMemory: string;
  gpu: Millis;
  gpuMemory?: string | null;
}

export interface AssetIdRef {
  id: string;
  kind?: AssetKind | null;
}

export interface AssetIds {
  compute?: string | null;
  datasources?: Array<AssetIdRef> | null;
  environment?: string | null;
}

export type AssetKind = "compute" | "environment" | "accessKey" | "dockerRegistry" | "ngcApiKey" | "password" | "genericSecret" | "s3" | "git" | "nfs" | "pvc" | "hostPath" | "config-map" | "secret-volume";

export interface AssetMeta {
  clusterId?: string | null;
  createdAt: Time;
  createdBy: string;
  departmentId?: string | null;
  description?: string | null;
  id: string;
  kind: AssetKind;
  name: string;
  projectId?: number | null;
  projectName?: string | null;
  scope: ScopeType;
  tenantId: number;
  updateCount: number;
  updatedAt: Time;
  updatedBy: string;
  workloadSupportedTypes?: WorkloadSupportedTypes | null;
}

export interface AssetRef {
  id: string;
  name: string;
}

export interface AssetUsageInfo {
  distributed: Array<WorkloadRefAndStatus>;
  inferences: Array<WorkloadRefAndStatus>;
  templates: Array<AssetRef>;
  trainings: Array<WorkloadRefAndStatus>;
  workspaces: Array<WorkloadRefAndStatus>;
}

export interface AutoScaling {
  activationReplicas?: number | null;
  concurrencyHardLimit?: number | null;
  initialReplicas?: number | null;
  initializationTimeoutSeconds?: number | null;
  maxReplicas?: number | null;
  metric?: string | null;
  metricThreshold?: number | null;
  metricThresholdPercentage?: number | null;
  minReplicas?: number | null;
  scaleDownDelaySeconds?: number | null;
  scaleToZeroRetentionSeconds?: number | null;
}

export interface Categories {
  Training: "Train";
  Workspace: "Build";
  Distributed: "Train";
  Inference: "Deploy";
}

export interface ClaimInfo {
  accessModes?: PvcAccessModes | null;
  addedAttrValues?: unknown;
  size?: string | null;
  storageClass?: string | null;
  volumeMode?: string | null;
}

export type CleanPodPolicy = "None" | "All" | "Running";

export interface CodePage {
  code: string;
  name: string;
  text: string;
}

export interface Compute {
  cpuCoreLimit?: number | null;
  cpuCoreRequest?: number | null;
  cpuMemoryLimit?: string | null;
  cpuMemoryRequest?: string | null;
  extendedResources?: Array<ExtendedResource> | null;
  gpuDevicesRequest?: number | null;
  gpuMemoryLimit?: string | null;
  gpuMemoryRequest?: string | null;
  gpuPortionLimit?: number | null;
  gpuPortionRequest?: number | null;
  gpuRequestType?: GpuRequestType | null;
  largeShmRequest?: boolean | null;
}

export interface ComputeAsset {
  meta: AssetMeta;
  spec: ComputeAssetSpec;
  usedBy?: AssetUsageInfo | null;
}

export interface ComputeAssetSpec {
  cpuCoreLimit?: number | null;
  cpuCoreRequest?: number | null;
  cpuMemoryLimit?: string | null;
  cpuMemoryRequest?: string | null;
  extendedResources?: Array<ExtendedResource> | null;
  gpuDevicesRequest?: number | null;
  gpuMemoryLimit?: string | null;
  gpuMemoryRequest?: string | null;
  gpuPortionLimit?: number | null;
  gpuPortionRequest?: number | null;
  gpuRequestType?: GpuRequestType | null;
  largeShmRequest?: boolean | null;
}

export interface Condition1 {
  lastTransitionTime: Time;
  message: string;
  reason: string;
  status: string;
  type: string;
}

export interface ConfigMapInstance {
  configMap?: string | null;
  defaultMode?: string | null;
  exclude?: boolean | null;
  mountPath?: string | null;
  name?: string | null;
  subPath?: string | null;
}

export interface Connection {
  externalToolInfo?: ExternalToolInfo | null;
  internalToolInfo?: InternalToolInfo | null;
  isExternal?: boolean;
  name: string;
}

export interface Connection1 {
  authorizationType?: ServingPortAccessAuthorizationTypeEnum | null;
  authorizedUsers?: Array<string> | null;
  connectionType: string;
  containerPort?: number | null;
  name: string;
  toolType: string;
  url?: string | null;
}

export interface Container1 {
  image: string;
  name: string;
  startedAt?: Time | null;
}

export interface Datasource {
  id: string;
  name: string;
  type: AssetKind;
}

export interface DepartmentForList {
  children: Array<DepartmentProjectChild>;
  clusterId: string;
  createdAt: Time;
  createdBy: string;
  defaultNodePools: Array<string>;
  description?: string;
  id: string;
  name: string;
  nodeTypes?: NodeTypesPerWorkload;
  resources: Array<Resources>;
  schedulingRules: SchedulingRules;
  status: DepartmentStatus;
  totalResources: TotalResources;
  updatedAt: Time;
  updatedBy: string;
}

export interface DepartmentProjectChild {
  id: string;
  name: string;
}

export interface DepartmentStatus {
  additionalStatusData: Record<string, unknown>;
  nodePoolQuotaStatuses: Array<NodePoolQuota>;
  quotaStatus: QuotaStatus;
}

export interface Diagnosis {
  advice: Array<Advice>;
  ahead?: Array<WorkloadAhead>;
  aheadMore?: number;
  complete: boolean;
  holders: Array<string>;
  lines: Array<string>;
  nodeClasses?: Array<NodesAlike>;
  nodes: Array<string>;
  notCounted?: NotCounted | null;
  podSets?: Array<PodsPlaced>;
  projectHoldings?: Array<ProjectHolding>;
  projectHoldingsMore?: number;
  searches: Array<Search>;
  workloadHoldings?: Array<WorkloadHolding>;
  workloadHoldingsMore?: number;
}

export type DistFramework = "MPI" | "PyTorch" | "TF" | "XGBoost";

export type DistributedFramework = "MPI" | "PyTorch" | "TF" | "XGBoost" | "JAX" | "ElasticDL" | "LWS";

export interface EmptyDirInstance {
  exclude?: boolean | null;
  medium?: string | null;
  name?: string | null;
  path?: string | null;
  sizeLimit?: string | null;
}

export interface Environment1 {
  id: string;
  name: string;
}

export interface EnvironmentAsset {
  meta: AssetMeta;
  spec: EnvironmentAssetSpec;
  usedBy?: AssetUsageInfo | null;
}

export interface EnvironmentAssetSpec {
  allowPrivilegeEscalation?: boolean | null;
  args?: string | null;
  capabilities?: Array<string> | null;
  command?: string | null;
  connections?: Array<Connection> | null;
  createHomeDir?: boolean | null;
  environmentVariables?: Array<EnvironmentVariableOfAsset> | null;
  hostIpc?: boolean | null;
  hostNetwork?: boolean | null;
  image?: string | null;
  imagePullPolicy?: ImagePullPolicy | null;
  overrideUidGidInWorkspace?: boolean | null;
  probes?: Probes | null;
  readOnlyRootFilesystem?: boolean | null;
  runAsGid?: number | null;
  runAsNonRoot?: boolean | null;
  runAsUid?: number | null;
  seccompProfileType?: string | null;
  stdin?: boolean | null;
  supplementalGroups?: string | null;
  tty?: boolean | null;
  uidGidSource?: string | null;
  workingDir?: string | null;
}

export interface EnvironmentVariable {
  configMap?: EnvironmentVariableConfigMap | null;
  description?: string | null;
  exclude?: boolean | null;
  name?: string | null;
  podFieldRef?: unknown;
  secret?: EnvironmentVariableSecret | null;
  userCredential?: unknown;
  value?: string | null;
}

export interface EnvironmentVariableConfigMap {
  key?: string | null;
  name?: string | null;
}

export interface EnvironmentVariableCredential {
  assetId?: string | null;
  key?: string | null;
}

export interface EnvironmentVariableOfAsset {
  configMap?: EnvironmentVariableConfigMap | null;
  credential?: EnvironmentVariableCredential | null;
  description?: string | null;
  exclude?: boolean | null;
  name?: string | null;
  podFieldRef?: unknown;
  value?: string | null;
}

export interface EnvironmentVariableSecret {
  key?: string | null;
  name?: string | null;
}

export interface Error {
  code: number;
  details?: string | null;
  fieldFault?: FieldFault | null;
  message: string;
  missingPermission?: MissingPermission | null;
  unknownName?: boolean | null;
}

export interface Event2 {
  beneficiary?: WorkloadName | null;
  clusterId: string;
  createdAt: Time;
  id: string;
  involvedObject: InvolvedObject;
  message: string;
  reason: string;
  source: string;
  type: string;
}

export interface EventsPage {
  events: Array<Event2>;
  next?: number | null;
}

export interface Eviction {
  at: Time;
  beneficiary?: WorkloadName | null;
  code: string;
  message: string;
}

export interface Explanation {
  diagnosis?: Diagnosis | null;
  events: Array<LiveEvent>;
  fractions?: FractionLimit | null;
  furtherReasons?: Array<Reason>;
  lastEviction?: Eviction | null;
  pendingReasons: Array<Reason>;
  phase: string;
  projectAllocated: Millis;
  projectFairShare: Millis;
  projectName: string;
  projectPools?: Array<ShareInPool>;
  projectQuota: Millis;
  startEstimate?: StartEstimate | null;
  summary: string;
  training?: JobTraining | null;
  unsavedSince?: Time | null;
  workloadId: string;
  workloadName: string;
}

export interface ExposedUrl {
  authorizationType?: ServingPortAccessAuthorizationTypeEnum | null;
  authorizedGroups?: Array<string> | null;
  authorizedUsers?: Array<string> | null;
  container?: number | null;
  exclude?: boolean | null;
  name?: string | null;
  toolName?: string | null;
  toolType?: string | null;
  url?: string | null;
}

export interface ExtendedResource {
  exclude?: boolean | null;
  quantity?: string | null;
  resource: string;
}

export interface ExternalToolInfo {
  externalUrl: string;
  toolType: string;
}

export interface ExternalUrlInfo {
  externalUrl?: string | null;
  isCustomUrl?: boolean | null;
}

export interface FieldFault {
  field: string;
  message: string;
}

export interface FractionLimit {
  computeLimit?: Millis | null;
  computeRequest?: Millis | null;
  enforcement: string;
  meaning: string;
  mechanism: string;
  timeSlicing?: string;
  timeSlicingMeaning?: string;
  why?: string | null;
}

export interface GitInstance {
  branch?: string | null;
  exclude?: boolean | null;
  name?: string | null;
  passwordSecret?: string | null;
  path?: string | null;
  repository?: string | null;
  revision?: string | null;
  secretKeyOfPassword?: string | null;
  secretKeyOfUser?: string | null;
}

export interface Gpu {
  allocated: Millis;
  fault?: GpuFault | null;
  fractions?: FractionLimit | null;
  gpuType: string;
  id: string;
  index: number;
  memoryBytes: number;
  nodeName: string;
  nodePool: string;
  pods: Array<GpuPod>;
  simulated: boolean;
  uuid: string;
}

export interface GpuFault {
  code: string;
  gpu: number;
  message: string;
  name: string;
}

export interface GpuInfo {
  gpuCount: number;
  gpuType: string;
}

export interface GpuPod {
  id: string;
  name: string;
  projectId: string;
  share: Millis;
  workloadId: string;
  workloadName: string;
}

export type GpuRequestType = "portion" | "memory";

export interface HostPathInstance {
  exclude?: boolean | null;
  mountPath?: string | null;
  mountPropagation?: string | null;
  name?: string | null;
  path?: string | null;
  readOnly?: boolean | null;
}

export type ImagePullPolicy = "Always" | "IfNotPresent" | "Never";

export interface ImagePullSecret {
  exclude?: boolean | null;
  name?: string | null;
  userCredential?: boolean | null;
}

export interface Instances {
  count: number;
  memoryBytes?: number | null;
  millis?: number | null;
  profile?: string | null;
}

export interface InternalToolInfo {
  connectionType: string;
  containerPort: number;
  externalUrlInfo?: ExternalUrlInfo | null;
  nodePortInfo?: NodePortInfo | null;
  servingPortInfo?: ServingPortInfo | null;
  toolType: string;
}

export interface InvolvedObject {
  kind: string;
  name: string;
  namespace: string;
  uid: string;
}

export interface JobTraining {
  badRecords?: number;
  checkpointVersion?: number;
  checkpointedAt?: Time | null;
  embeddingRows?: number;
  epoch?: number;
  modelVersion?: number;
  oldGradients?: number;
  records?: number;
  recordsTotal?: number | null;
  samplesPerSecond?: Millis;
  workers?: number;
}

export interface LiveEvent {
  at: Time;
  code?: string | null;
  kind: string;
  message: string;
  podName?: string | null;
  projectName: string;
  seq: number;
  warning: boolean;
  workloadId?: string | null;
  workloadName: string;
}

export interface MatchExpression {
  key: string;
  operator: MatchExpressionOperator;
  values?: Array<string> | null;
}

export type MatchExpressionOperator = "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";

export type Millis = number;

export interface MissingPermission {
  action: string;
  resourceType: string;
  roles: Array<string>;
}

export type MpiLauncherCreationPolicy = "AtStartup" | "WaitForWorkersReady";

export interface NameValue {
  exclude?: boolean | null;
  name: string;
  value?: string;
}

export interface NfsInstance {
  exclude?: boolean | null;
  mountPath?: string | null;
  name?: string | null;
  path?: string | null;
  readOnly?: boolean | null;
  server?: string | null;
}

export interface Node {
  clusterUuid: string;
  conditions?: Array<NodeStatusConditionDetails>;
  cpuMillis?: number;
  cpuUsedMillis?: number;
  createdAt: Time;
  gpuInfo?: GpuInfo | null;
  gpuMemoryBytes?: Array<number>;
  gpuUsed?: Array<Millis>;
  id: string;
  labels?: Record<string, string>;
  memoryBytes?: number;
  memoryUsedBytes?: number;
  name: string;
  nodePool: string;
  scheduling?: NodeScheduling;
  simulated?: boolean;
  status: string;
  taints?: Array<Taint>;
  updatedAt: Time;
}

export interface NodeAffinityRequired {
  nodeSelectorTerms?: Array<NodeSelectorTerm>;
}

export type NodePoolQuota = QuotaStatus & { nodePoolId: string; nodePoolName: string; };

export interface NodePortInfo {
  isCustomPort?: boolean | null;
}

export type NodeScheduling = "enabled" | "disabled" | "draining";

export interface NodeSelectorTerm {
  matchExpressions?: Array<MatchExpression>;
}

export interface NodeStatusConditionDetails {
  message: string;
  reason: string;
  status: string;
  type: string;
}

export interface NodeTypesPerWorkload {
  names?: Record<string, string>;
  training?: Array<string>;
  workspace?: Array<string>;
}

export interface NodesAlike {
  cpuMillis?: number;
  failing?: Array<NodesFailing>;
  gpuMemoryBytes?: number;
  gpus?: number;
  instances?: Array<Instances>;
  kinds?: number;
  labels?: Record<string, string>;
  like: string;
  memoryBytes?: number;
  nodes: number;
  room: number;
  set?: string;
  taints?: Array<string>;
}

export interface NodesFailing {
  closest?: string | null;
  most?: number | null;
  needed?: number | null;
  nodes: number;
  obstacle: string;
}

export interface NotCounted {
  leftOut: number;
  name: string;
  requested: number;
  resource: ResourceKind;
}

export interface Outage {
  kind?: OutageKind;
  message: string;
  since: Time;
}

export type OutageKind = "silent" | "diskFull";

export interface Parent {
  id: string;
  name: string;
}

export interface Permission {
  actions: Array<string>;
  displayName: string;
  groupId: string;
  resourceType: string;
}

export interface Phases {
  Creating: { waits: false; isOver: false };
  Pending: { waits: true; isOver: false };
  Resuming: { waits: true; isOver: false };
  Initializing: { waits: false; isOver: false };
  Running: { waits: false; isOver: false };
  Degraded: { waits: false; isOver: false };
  Updating: { waits: false; isOver: false };
  Stopping: { waits: false; isOver: false };
  Stopped: { waits: false; isOver: false };
  Deleting: { waits: false; isOver: false };
  Terminating: { waits: false; isOver: false };
  Completed: { waits: false; isOver: true };
  Failed: { waits: false; isOver: true };
}

export interface Pod1 {
  allocatedResources: AllocatedResources;
  clusterId: string;
  completedAt?: Time | null;
  containers: Array<Container1>;
  createdAt: Time;
  currentNodePool?: string | null;
  generation?: number;
  gpus?: Array<[number, number]>;
  id: string;
  k8sPhase: string;
  k8sPhaseUpdatedAt: Time;
  lastExit?: string | null;
  name: string;
  nodeName?: string | null;
  priorityClassName: string;
  projectId: string;
  projectName: string;
  requestedResources: RequestResources;
  restarts?: number;
  revisionId?: string | null;
  role?: string;
  state?: string;
  tenantId: number;
  training?: PodTraining | null;
  updatedAt: Time;
  workloadId: string;
  workloadName: string;
}

export interface PodAffinity {
  key?: string | null;
  type?: PodAffinityType | null;
}

export type PodAffinityType = "Required" | "Preferred";

export interface PodStates {
  crashLooping?: number;
  failed?: number;
  pending?: number;
  reserved?: number;
  running?: number;
  starting?: number;
  succeeded?: number;
  suspended?: number;
  terminating?: number;
}

export interface PodTraining {
  leaving?: boolean;
  modelVersion?: number;
  rank?: number;
  samplesPerSecond?: Millis;
  tasks?: Array<number>;
}

export interface PodsPlaced {
  placeable: number;
  pods: number;
  set?: string;
}

export interface Port {
  container?: number | null;
  exclude?: boolean | null;
  external?: number | null;
  name?: string | null;
  serviceType?: PortServiceType | null;
  toolName?: string | null;
  toolType?: string | null;
}

export type PortServiceType = "LoadBalancer" | "NodePort" | "ClusterIP";

export type Preemptibility = "preemptible" | "non-preemptible";

export interface Probe {
  failureThreshold?: number | null;
  handler?: ProbeHandler | null;
  initialDelaySeconds?: number | null;
  periodSeconds?: number | null;
  successThreshold?: number | null;
  timeoutSeconds?: number | null;
}

export interface ProbeHandler {
  httpGet?: ProbeHandlerHttpGet | null;
}

export interface ProbeHandlerHttpGet {
  host?: string | null;
  path?: string | null;
  port?: number | null;
  scheme?: string | null;
}

export interface Probes {
  readiness?: Probe | null;
}

export interface Project {
  clusterId: string;
  createdAt: Time;
  createdBy: string;
  defaultNodePools?: Array<string>;
  description?: string;
  effective: ProjectEffective;
  enforceRunaiScheduler: boolean;
  id: string;
  name: string;
  namespaces?: Array<string>;
  nodeTypes?: NodeTypesPerWorkload;
  parent: Parent;
  parentId: string;
  requestedNamespace: string;
  resources: Array<Resources>;
  schedulingRules: SchedulingRules;
  status: ProjectStatus;
  totalResources: TotalResources;
  updatedAt: Time;
  updatedBy: string;
}

export interface ProjectEffective {
  defaultNodePools: Array<string>;
  nodeTypes?: NodeTypesPerWorkload;
  schedulingRules: SchedulingRules;
}

export interface ProjectHolding {
  allocated: number;
  fairShare: number;
  held: number;
  isClaim?: boolean;
  lent?: number;
  name: string;
  quota: number;
  resource: ResourceKind;
}

export interface ProjectStatus {
  additionalStatusData: Record<string, unknown>;
  lastUpdatedTime: Time;
  namespace: string;
  nodePoolQuotaStatuses: Array<NodePoolQuota>;
  phase: string;
  phaseMessage: string;
  quotaStatus: QuotaStatus;
}

export interface PvcAccessModes {
  readOnlyMany?: boolean | null;
  readWriteMany?: boolean | null;
  readWriteOnce?: boolean | null;
}

export interface PvcInstance {
  claimInfo?: ClaimInfo | null;
  claimName?: string | null;
  dataSharing?: boolean | null;
  ephemeral?: boolean | null;
  exclude?: boolean | null;
  existingPvc?: boolean | null;
  name?: string | null;
  path?: string | null;
  readOnly?: boolean | null;
}

export interface QuotaResource {
  cpu: number;
  gpu: Millis;
  memory: number;
}

export interface QuotaStatus {
  allocated: QuotaResource;
  allocatedNonPreemptible: QuotaResource;
  requested: QuotaResource;
}

export interface Raise {
  from: number;
  name: string;
  nodePool?: string | null;
  resource: ResourceKind;
  to: number;
}

export type Rank = "VeryLow" | "Low" | "MediumLow" | "Medium" | "MediumHigh" | "High" | "VeryHigh";

export interface Reason {
  at: Time;
  code: string;
  message: string;
}

export interface RelatedUrl {
  exclude?: boolean | null;
  name?: string | null;
  type?: string | null;
  url?: string | null;
}

export interface RepairedGpus {
  gpus: Array<number>;
  node: string;
}

export interface RequestCores {
  request: Millis;
}

export interface RequestQuantity {
  request: string;
}

export interface RequestResources {
  cpu?: RequestCores | null;
  cpuMemory?: RequestQuantity | null;
  gpu?: RequestCores | null;
  gpuMemory?: RequestQuantity | null;
  gpuRequestType?: GpuRequestType | null;
}

export interface RequestedPods {
  completions?: number | null;
  max?: number | null;
  min?: number | null;
  number: number;
  parallelism?: number | null;
}

export type ResetReason = "start" | "other-epoch" | "too-old" | "access";

export type ResourceKind = "gpu" | "cpu" | "memory";

export interface ResourceShare {
  deserved?: number | null;
  deservedFromProjects?: boolean | null;
  limit?: number | null;
  overQuotaWeight?: number | null;
}

export interface Resources {
  cpu: ResourceShare;
  gpu: ResourceShare;
  memory: ResourcesMemory;
  nodePool: ResourcesNodePool;
  priority: Rank;
  rank: Rank;
}

export interface ResourcesMemory {
  deserved?: number | null;
  deservedFromProjects?: boolean | null;
  limit?: number | null;
  overQuotaWeight?: number | null;
  units: Units;
}

export interface ResourcesNodePool {
  id: string;
  name?: string | null;
}

export type RestartPolicy = "Always" | "Never" | "OnFailure";

export interface RoleV1 {
  createdAt: Time;
  createdBy: string;
  custom: boolean;
  description: string;
  effectiveEnabled: boolean;
  enabled: boolean;
  id: number;
  name: string;
  permissions: Array<Permission>;
  updatedAt: Time;
}

export type RowWhy = SharedWhy | Reason;

export interface S3Instance {
  accessKeySecret?: string | null;
  bucket?: string | null;
  exclude?: boolean | null;
  name?: string | null;
  path?: string | null;
  secretKeyOfAccessKeyId?: string | null;
  secretKeyOfSecretKey?: string | null;
  url?: string | null;
}

export interface SchedulingRules {
  interactiveJobMaxIdleDurationSeconds?: number | null;
  interactiveJobPreemptIdleDurationSeconds?: number | null;
  interactiveJobTimeLimitSeconds?: number | null;
  trainingJobMaxIdleDurationSeconds?: number | null;
  trainingJobTimeLimitSeconds?: number | null;
}

export type ScopeType = "system" | "tenant" | "cluster" | "department" | "project";

export interface Search {
  code: string;
  message: string;
}

export interface SecretVolume {
  defaultMode?: string | null;
  exclude?: boolean | null;
  mountPath?: string | null;
  name?: string | null;
  secret?: string | null;
}

export interface Security {
  allowPrivilegeEscalation?: boolean | null;
  capabilities?: Array<string> | null;
  hostIpc?: boolean | null;
  hostNetwork?: boolean | null;
  privileged?: boolean | null;
  readOnlyRootFilesystem?: boolean | null;
  runAsGid?: number | null;
  runAsNonRoot?: boolean | null;
  runAsUid?: number | null;
  seccompProfileType?: string | null;
  supplementalGroups?: string | null;
  uidGidSource?: string | null;
}

export interface ServerRow {
  clusterId: string;
  clusterName: string;
  interface: string;
  now: Time;
  outage?: Outage | null;
  version: string;
}

export interface ServingConfiguration {
  initializationTimeoutSeconds?: number | null;
  requestTimeoutSeconds?: number | null;
}

export interface ServingPort {
  authorizationType?: ServingPortAccessAuthorizationTypeEnum | null;
  authorizedGroups?: Array<string> | null;
  authorizedUsers?: Array<string> | null;
  clusterLocalAccessOnly?: boolean | null;
  container?: number | null;
  protocol?: ServingPortProtocol | null;
}

export type ServingPortAccessAuthorizationTypeEnum = "public" | "authenticatedUsers" | "authorizedUsers" | "authorizedGroups" | "authorizedUsersOrGroups";

export interface ServingPortInfo {
  protocol?: ServingPortProtocol | null;
}

export type ServingPortProtocol = "http" | "grpc";

export interface ShareInPool {
  allocated: Millis;
  fairShare: Millis;
  nodePool: string;
  quota: Millis;
}

export interface SharedReason {
  id: string;
  reasons: Array<Reason>;
}

export interface SharedWhy {
  at: Time;
  reason: string;
}

export interface StartEstimate {
  assumption: string;
  earliest?: Time | null;
  latest?: Time | null;
  unknownEnds?: Array<string>;
}

export interface Storage {
  configMapVolume?: Array<ConfigMapInstance> | null;
  dataVolume?: unknown;
  emptyDirVolume?: Array<EmptyDirInstance> | null;
  git?: Array<GitInstance> | null;
  hostPath?: Array<HostPathInstance> | null;
  nfs?: Array<NfsInstance> | null;
  pvc?: Array<PvcInstance> | null;
  s3?: Array<S3Instance> | null;
  secretVolume?: Array<SecretVolume> | null;
}

export interface Taint {
  effect: TaintEffect;
  key: string;
  value?: string;
}

export type TaintEffect = "NoSchedule" | "PreferNoSchedule" | "NoExecute";

export interface TemplateMasterSection {
  assets?: unknown;
  spec?: WorkloadSpec | null;
}

export interface TemplateMetaFields {
  clusterId?: string | null;
  createdAt: Time;
  createdBy: string;
  departmentId?: string | null;
  description?: string | null;
  id: string;
  name: string;
  projectId?: number | null;
  scopeId: string;
  scopeType: ScopeType;
  updatedAt: Time;
  updatedBy: string;
  workloadType: WorkloadType;
}

export type Time = string;

export interface Toleration {
  effect?: TolerationEffect | null;
  exclude?: boolean | null;
  key?: string | null;
  name?: string | null;
  operator?: TolerationOperator | null;
  seconds?: number | null;
  value?: string | null;
}

export type TolerationEffect = "NoSchedule" | "NoExecute" | "PreferNoSchedule" | "Any";

export type TolerationOperator = "Equal" | "Exists";

export interface TotalResources {
  cpuQuota?: number | null;
  gpuQuota: Millis;
  memoryQuota?: number | null;
}

export type Units = "Mib" | "MB" | "GB";

export interface Workload {
  actionsSupport: ActionsSupport;
  additionalFields?: WorkloadExtras;
  allocatedResources: AllocatedResources;
  arguments?: string | null;
  category: string;
  clusterId: string;
  command?: string | null;
  completedAt?: Time | null;
  conditions: Array<Condition1>;
  createdAt: Time;
  currentNodePools: Array<string>;
  datasources?: Array<Datasource>;
  deletedAt?: Time | null;
  departmentId: string;
  departmentName: string;
  distributedFramework?: string | null;
  environmentVariables?: Record<string, string> | null;
  environments?: Array<Environment1>;
  externalConnections?: Array<Connection1>;
  id: string;
  idleAllocatedGpus?: Millis;
  idleGpus?: number;
  images: Array<string>;
  k8sPhase: string;
  k8sPhaseUpdatedAt: Time;
  name: string;
  namespace: string;
  phase: string;
  phaseMessage?: string | null;
  phaseReason?: string | null;
  phaseUpdatedAt: Time;
  podsRequestedResources: RequestResources;
  preemptible: boolean;
  priority?: number | null;
  priorityClassName: string;
  projectId: string;
  projectName: string;
  requestedNodePools: Array<string>;
  requestedPods: RequestedPods;
  runningPods: number;
  source: string;
  submittedBy: string;
  tenantId: number;
  topology?: WorkloadTopology | null;
  totalPendingTimeSeconds: number;
  totalRunningTimeSeconds: number;
  type: string;
  updatedAt: Time;
  urls?: Array<string>;
  workloadRequestedResources: RequestResources;
}

export interface WorkloadAhead {
  message: string;
  precedence: string;
  priority?: number | null;
  requestedGpus: Millis;
  workload: WorkloadName;
}

export interface WorkloadExtras {
  annotations?: Record<string, string>;
  checkpointedAt?: Time | null;
  commandLine?: string | null;
  computeResource?: AssetRef | null;
  elastic?: boolean;
  gpus?: Array<[number, number]>;
  labels?: Record<string, string>;
  lastEviction?: Eviction | null;
  lastExit?: string | null;
  nodes?: Array<string>;
  overQuota?: boolean;
  pendingReasons?: Array<Reason>;
  pods?: PodStates;
  requestedGpus?: Millis;
  reserved?: boolean;
  restarts?: number;
  startedAt?: Time | null;
  template?: AssetRef | null;
  training?: JobTraining | null;
}

export interface WorkloadGridRow {
  completedAt?: Time | null;
  computeResource?: string | null;
  connections?: Array<string>;
  cpuAllocated?: Millis;
  cpuRequested?: Millis;
  createdAt: Time;
  dataSources?: Array<string>;
  departmentId: string;
  environment?: string | null;
  gpuMemoryAllocated?: number;
  gpuMemoryRequested?: number | null;
  gpusAllocated?: Millis;
  gpusRequested: Millis;
  id: string;
  idleSince?: Time | null;
  image?: string;
  lastEviction?: Reason | null;
  memoryAllocated?: number;
  memoryRequested?: number;
  name: string;
  nodePools?: Array<string>;
  nodes?: Array<string>;
  nodesCount?: number;
  overQuota?: boolean;
  phase: string;
  phaseUpdatedAt?: Time | null;
  podsRequested: number;
  podsRunning?: number;
  preemptible: boolean;
  priorityClassName: string;
  projectId: string;
  projectName: string;
  submittedBy: string;
  template?: string | null;
  type: string;
  why?: RowWhy | null;
}

export interface WorkloadHolding {
  held: number;
  priority?: number | null;
  resource: ResourceKind;
  standing: string;
  until?: Time | null;
  workload: WorkloadName;
}

export type WorkloadKey = "id" | "type" | "name" | "clusterId" | "projectId" | "projectName" | "departmentId" | "departmentName" | "createdAt" | "completedAt" | "deletedAt" | "submittedBy" | "source" | "phase" | "phaseUpdatedAt" | "nodepool" | "distributedFramework" | "architecture" | "allocatedGPU" | "requestedGPU" | "requestedGPUMemory" | "allocatedGPUMemory" | "idleGpus" | "idleAllocatedGpus" | "idleTimeSeconds" | "allocatedCPU" | "requestedCPU" | "allocatedCPUMemory" | "requestedCPUMemory" | "runningPods" | "requestedPods" | "images" | "template" | "environments" | "computeResource" | "datasources" | "connections" | "category" | "priority" | "priorityClassName" | "preemptible" | "totalPendingTimeSeconds" | "totalRunningTimeSeconds" | "nodes" | "labels" | "qualifiedName" | "activity";

export interface WorkloadName {
  id?: string | null;
  name: string;
  projectName: string;
  revision?: string | null;
}

export interface WorkloadRefAndStatus {
  id: string;
  name: string;
  status: string;
}

export interface WorkloadSpec {
  annotations?: Array<NameValue> | null;
  args?: string | null;
  assets?: AssetIds | null;
  autoDeletionTimeAfterCompletionSeconds?: number | null;
  autoscaling?: AutoScaling | null;
  backoffLimit?: number | null;
  category?: string | null;
  cleanPodPolicy?: CleanPodPolicy | null;
  command?: string | null;
  commandLine?: string | null;
  completions?: number | null;
  compute?: Compute | null;
  createHomeDir?: boolean | null;
  distributedFramework?: DistributedFramework | null;
  elastic?: boolean | null;
  environmentVariables?: Array<EnvironmentVariable> | null;
  exposedUrls?: Array<ExposedUrl> | null;
  image?: string | null;
  imagePullPolicy?: ImagePullPolicy | null;
  imagePullSecrets?: Array<ImagePullSecret> | null;
  labels?: Array<NameValue> | null;
  maxReplicas?: number | null;
  minReplicas?: number | null;
  mpiLauncherCreationPolicy?: MpiLauncherCreationPolicy | null;
  nodeAffinityRequired?: NodeAffinityRequired | null;
  nodePools?: Array<string> | null;
  nodeType?: string | null;
  numWorkers?: number | null;
  parallelism?: number | null;
  podAffinity?: PodAffinity | null;
  podNames?: string | null;
  podPriority?: number | null;
  ports?: Array<Port> | null;
  preemptibility?: Preemptibility | null;
  preemptionDelaySeconds?: number | null;
  priorityClass?: string | null;
  probes?: Probes | null;
  relatedUrls?: Array<RelatedUrl> | null;
  restartPolicy?: RestartPolicy | null;
  schedulingGates?: Array<string> | null;
  security?: Security | null;
  servingConfiguration?: ServingConfiguration | null;
  servingPort?: ServingPort | null;
  slotsPerWorker?: number | null;
  sparePriorityClass?: string | null;
  sshAuthMountPath?: string | null;
  stdin?: boolean | null;
  storage?: Storage | null;
  terminateAfterPreemption?: boolean | null;
  terminationGracePeriodSeconds?: number | null;
  timeLimitSeconds?: number | null;
  tolerations?: Array<Toleration> | null;
  tty?: boolean | null;
  workingDir?: string | null;
}

export interface WorkloadSupportedTypes {
  distFramework?: DistFramework | null;
  distributed?: boolean;
  inference?: boolean;
  training?: boolean;
  workspace?: boolean;
}

export interface WorkloadTemplate {
  master?: TemplateMasterSection | null;
  masterSpecSameAsWorker?: boolean | null;
  meta: TemplateMetaFields;
  spec: unknown;
}

export interface WorkloadTopology {
  name: string;
  preferredPlacement?: string | null;
  requiredPlacement?: string | null;
}

export type WorkloadType = "Workspace" | "Training" | "Distributed" | "Inference";
