import type { AgentRun, AgentTask } from '../../../src/ports/agent-runtime.js'

/** A task with ids that tests can recognise. */
export function taskOf(capability: string, input: unknown): AgentTask {
  return { taskId: 'task_1', requestId: 'req_1', attempt: 1, capability, description: 'a test', swarm: null, input }
}

/** What a run is given, and what it reported so far. */
export interface RecordedRun extends AgentRun {
  readonly reports: unknown[]
  /** Resolves with the next report. */
  report(): Promise<unknown>
  abort(): void
}

/** A run that remembers its progress and can be aborted. */
export function recordedRun(): RecordedRun {
  const controller = new AbortController()
  const reports: unknown[] = []
  let wake: (() => void) | null = null
  let read = 0
  return {
    signal: controller.signal,
    reports,
    progress: (data) => {
      reports.push(data)
      wake?.()
    },
    report: async () => {
      while (read >= reports.length) await new Promise<void>((resolve) => (wake = resolve))
      return reports[read++]
    },
    abort: () => controller.abort()
  }
}
