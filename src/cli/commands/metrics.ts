import type { MetricName, MetricsSnapshot } from '../../ports/telemetry.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet } from '../options.js'
import { printTable } from '../render.js'
import { rttText } from '../words.js'

/** `metrics`: counts and times; with `--prometheus` in that text format. */
export const metrics: Action = async ({ output, api }, _args, options) => {
  const snapshot = await api().call('node.metrics', {})
  if (output.json) output.object('metrics@1', snapshot)
  else if (isSet(options, 'prometheus')) for (const line of prometheusLines(snapshot)) output.print(line)
  else {
    const counters = snapshot.counters.map((one) => [one.name, one.label ?? '-', String(one.value)])
    await printTable(output, ['COUNT', 'LABEL', 'VALUE'], counters)
    output.print()
    const timings = snapshot.timings.map((one) => [
      one.name,
      String(one.count),
      rttText(one.count === 0 ? null : one.sumMs / one.count),
      rttText(one.maxMs)
    ])
    await printTable(output, ['TIME', 'COUNT', 'MEAN', 'MAX'], timings)
  }
  return EXIT.ok
}

/** What each metric counts, for who scrapes them. */
const HELP: Readonly<Record<MetricName, string>> = {
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
  approvals: 'Messages that waited for a person, by what became of them.',
  errors: 'Things that went wrong within this node, by place.'
}

/** The text format of Prometheus, version 0.0.4: counters with an optional `label`, timings as summaries in seconds. */
export function prometheusLines(snapshot: MetricsSnapshot): string[] {
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
  return Object.hasOwn(HELP, name) ? HELP[name as MetricName] : `${name} of this node.`
}

function escapeLabel(label: string): string {
  return label.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
