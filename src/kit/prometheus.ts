/** Metrics of the node with their help texts. */
export const METRICS = {
  messages_sent: 'Messages handed to a channel or to an agent of this node, by type.',
  messages_received: 'Received messages, those of this node included, by type; unreadable: no message at all.',
  messages_refused: 'Refused messages, by code; late: a reply to an ended exchange.',
  messages_delivered: 'Messages that came in and were let through, by type.',
  messages_passed_on: 'Messages of other nodes that were carried on, by type.',
  routing_ms: 'Time from sending a message to its channel.',
  routing_decisions: 'Decisions of the rules: allowed, or the code of the refusal.',
  routing_decision_ms: 'Time from when a message came, or was to be sent, to the decision.',
  tasks_started: 'Tasks that an agent of this node began.',
  tasks_completed: 'Tasks that an agent of this node completed.',
  tasks_failed: 'Tasks that an agent of this node did not complete.',
  task_ms: 'Time that agents of this node worked on a task.',
  links_opened: 'Links to members that were opened.',
  links_closed: 'Links to members that ended.',
  strangers_cut: 'Streams that were ended before or at the gate, by reason.',
  frames_malformed: 'Frames that could not be read.',
  log_entries_submitted: 'Entries that this node brought into the log of the mesh, by kind.',
  gateway_calls:
    'Calls to the gateway over HTTP that were let through, by its face: mcp, rpc, rest, agui, facade, card.',
  gateway_limited: 'Calls to the gateway over HTTP beyond the limit of their token, by its face.',
  http_limited:
    'HTTP requests without a valid token beyond the limit of their address, by limit: anonymous, wrong-token.',
  agent_checks: 'Health checks of agents of this node, by result.',
  agent_reloads: 'Agents whose changed version was swapped in.',
  agent_file_faults: 'Faults found in agent files while the last good version went on.',
  mcp_log_lines_dropped: 'Log lines of MCP servers that may belong to several calls under way, by server.',
  approvals: 'Messages that waited for a person, by outcome.',
  notifications: 'Tries of push notifications, by outcome: delivered, again, dead.',
  errors: 'Internal faults of this node, by component.'
} as const

/** Counts and times at one moment. */
export interface Measured {
  readonly counters: readonly { readonly name: string; readonly label: string | null; readonly value: number }[]
  readonly timings: readonly {
    readonly name: string
    readonly count: number
    readonly sumMs: number
    readonly maxMs: number
  }[]
  /** Of the agents of a node. */
  readonly agents?: readonly AgentMeasured[]
  /** Of its messages and MCP tools; absent for a caller in a sandbox. */
  readonly a2a?: A2AMeasured
}

/**
 * Sums and means of messages and MCP tool calls (spec a2a-mcp-mesh, A2AMetrics). A mean without a duration is 0. Times
 * in milliseconds.
 */
export interface A2AMeasured {
  readonly totalMessagesSent: number
  readonly totalMessagesReceived: number
  /** Each message of this node once, also one between two of its agents. */
  readonly messagesByType: Readonly<Record<string, number>>
  /** Of the routing decisions with a duration. */
  readonly averageRoutingLatencyMs: number
  readonly timedRoutings: number
  readonly totalRoutingMs: number
  /** Refused and failed messages, and input that is no message. */
  readonly errorCount: number
  readonly totalToolInvocations: number
  readonly toolInvocationsByTool: Readonly<Record<string, number>>
  readonly averageToolDurationMs: number
  readonly toolErrorCount: number
  readonly tools: readonly ToolMeasured[]
}

/** Measurements of one MCP tool. */
export interface ToolMeasured {
  /** Canonical name; `unknown`: calls of tools that do not exist; `other`: calls of tools beyond the limit of names. */
  readonly tool: string
  readonly invocations: number
  readonly errors: number
  /** Calls with a duration, in which the next two are. */
  readonly timed: number
  readonly totalDurationMs: number
  readonly averageDurationMs: number
}

/** Upper bounds of the times of runs that are counted apart, in seconds. */
export const RUN_BOUNDS = [0.01, 0.1, 1, 10, 60] as const

/** Measurements of one agent of a node. */
export interface AgentMeasured {
  readonly id: string
  /** null: not checked, or no health check. */
  readonly health: 'healthy' | 'degraded' | 'unhealthy' | null
  readonly running: number
  readonly waiting: number
  readonly runs: number
  readonly failures: number
  readonly spentMs: number
  /** Runs within each of {@link RUN_BOUNDS}, those within a smaller one too. */
  readonly within: readonly number[]
}

const STATES = ['healthy', 'degraded', 'unhealthy'] as const

/** The samples of agents: their health, their current work, and the duration of their runs. */
function agentLines(agents: readonly AgentMeasured[]): string[] {
  if (agents.length === 0) return []
  const of = (id: string): string => `agent="${escapeLabel(id)}"`
  const gauge = (name: string, help: string, value: (one: AgentMeasured) => number): string[] => [
    ...headOf(name, 'gauge', help),
    ...agents.map((one) => `${name}{${of(one.id)}} ${value(one)}`)
  ]
  const found = agents.flatMap(({ id, health }) =>
    health === null
      ? []
      : STATES.map((state) => `a2a_node_agent_health{${of(id)},state="${state}"} ${Number(health === state)}`)
  )
  const times = agents.flatMap(({ id, runs, spentMs, within }) => [
    ...RUN_BOUNDS.map((bound, i) => `a2a_node_agent_run_seconds_bucket{${of(id)},le="${bound}"} ${within[i] ?? 0}`),
    `a2a_node_agent_run_seconds_bucket{${of(id)},le="+Inf"} ${runs}`,
    `a2a_node_agent_run_seconds_sum{${of(id)}} ${spentMs / 1000}`,
    `a2a_node_agent_run_seconds_count{${of(id)}} ${runs}`
  ])
  return [
    ...(found.length === 0
      ? []
      : [...headOf('a2a_node_agent_health', 'gauge', 'Health of an agent: 1 for that state.'), ...found]),
    ...gauge('a2a_node_agent_running', 'Runs of an agent under way.', (one) => one.running),
    ...gauge('a2a_node_agent_waiting', 'Tasks that wait for an agent.', (one) => one.waiting),
    ...headOf('a2a_node_agent_failures_total', 'counter', 'Runs of an agent that gave no result.'),
    ...agents.map(({ id, failures }) => `a2a_node_agent_failures_total{${of(id)}} ${failures}`),
    ...headOf('a2a_node_agent_run_seconds', 'histogram', 'Time of the ended runs of an agent.'),
    ...times
  ]
}

/** The samples of messages and tools. */
function a2aLines({ errorCount, timedRoutings, totalRoutingMs, tools }: A2AMeasured): string[] {
  const of = (tool: string): string => `{tool="${escapeLabel(tool)}"}`
  const perTool = tools.flatMap(({ tool, timed, totalDurationMs }) => [
    `a2a_node_tool_seconds_sum${of(tool)} ${totalDurationMs / 1000}`,
    `a2a_node_tool_seconds_count${of(tool)} ${timed}`
  ])
  return [
    ...headOf('a2a_node_message_errors_total', 'counter', 'Refused and failed messages, and input that is no message.'),
    `a2a_node_message_errors_total ${errorCount}`,
    ...headOf(
      'a2a_node_message_routing_seconds',
      'summary',
      'Time of messages through the node, from their start to their channel or agent.'
    ),
    `a2a_node_message_routing_seconds_sum ${totalRoutingMs / 1000}`,
    `a2a_node_message_routing_seconds_count ${timedRoutings}`,
    ...headOf('a2a_node_tool_invocations_total', 'counter', 'Calls of an MCP tool of this node.'),
    ...tools.map(({ tool, invocations }) => `a2a_node_tool_invocations_total${of(tool)} ${invocations}`),
    ...headOf('a2a_node_tool_errors_total', 'counter', 'Calls of an MCP tool that gave no result.'),
    ...tools.map(({ tool, errors }) => `a2a_node_tool_errors_total${of(tool)} ${errors}`),
    ...headOf('a2a_node_tool_seconds', 'summary', 'Time of the calls of an MCP tool.'),
    ...perTool
  ]
}

/** The text format of Prometheus, version 0.0.4: counters with an optional `label`, timings as summaries in seconds. */
export function prometheusLines(snapshot: Measured): string[] {
  const lines: string[] = []
  const typed = new Set<string>()
  for (const { name, label, value } of snapshot.counters) {
    const metric = `a2a_node_${name}_total`
    if (!typed.has(metric)) lines.push(...headOf(metric, 'counter', helpOf(name)))
    typed.add(metric)
    lines.push(`${metric}${label === null ? '' : `{label="${escapeLabel(label)}"}`} ${value}`)
  }
  for (const { name, count, sumMs, maxMs } of snapshot.timings) {
    const metric = `a2a_node_${name.replace(/_ms$/, '')}_seconds`
    lines.push(...headOf(metric, 'summary', helpOf(name)), `${metric}_sum ${sumMs / 1000}`, `${metric}_count ${count}`)
    lines.push(...headOf(`${metric}_max`, 'gauge', `Longest: ${helpOf(name)}`), `${metric}_max ${maxMs / 1000}`)
  }
  return [...lines, ...agentLines(snapshot.agents ?? []), ...(snapshot.a2a === undefined ? [] : a2aLines(snapshot.a2a))]
}

function headOf(metric: string, type: 'counter' | 'summary' | 'gauge' | 'histogram', help: string): string[] {
  return [`# HELP ${metric} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`, `# TYPE ${metric} ${type}`]
}

/** A node of another version may count more than is known here. */
function helpOf(name: string): string {
  return Object.hasOwn(METRICS, name) ? METRICS[name as keyof typeof METRICS] : `${name} of this node.`
}

function escapeLabel(label: string): string {
  return label.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
