/** Metrics of the node, with what each counts for who scrapes them. */
export const METRICS = {
  messages_sent: 'Messages handed to a channel or to an agent of this node, by type.',
  messages_received: 'Messages that came in, those of this node included, by type; unreadable: no message at all.',
  messages_refused: 'Messages that were refused, by code; late: a reply to what has ended.',
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
  gateway_calls: 'Calls to the gateway over HTTP that were let through, by its face: rpc, rest, agui, facade, card.',
  gateway_limited: 'Calls to the gateway over HTTP beyond the limit of their token, by its face.',
  approvals: 'Messages that waited for a person, by what became of them.',
  notifications: 'Tries of push notifications, by what became of them: delivered, again, dead.',
  errors: 'Things that went wrong within this node, by place.'
} as const

/** Counts and times at one moment. */
export interface Measured {
  readonly counters: readonly { readonly name: string; readonly label: string | null; readonly value: number }[]
  readonly timings: readonly { readonly name: string; readonly count: number; readonly sumMs: number; readonly maxMs: number }[]
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
  return lines
}

function headOf(metric: string, type: 'counter' | 'summary' | 'gauge', help: string): string[] {
  return [`# HELP ${metric} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`, `# TYPE ${metric} ${type}`]
}

/** A node of another version may count more than is known here. */
function helpOf(name: string): string {
  return Object.hasOwn(METRICS, name) ? METRICS[name as keyof typeof METRICS] : `${name} of this node.`
}

function escapeLabel(label: string): string {
  return label.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
