import { shown } from '../../kit/text.js'
import type { TaskEventInfo } from '../../ports/task-api.js'
import { jsonLine, type Output } from '../terminal/output.js'
import { timeText, WAITING_TEXT } from '../words.js'

const EVENT_MAX = 200

/** The line of one event of a task: number, time, text. */
export function eventLine(output: Output, event: TaskEventInfo): string {
  const place = output.paint('dim', `${String(event.generation).padStart(3)}  ${timeText(event.at)}`)
  return `  ${place}  ${eventText(event)}`
}

function eventText(event: TaskEventInfo): string {
  switch (event.type) {
    case 'state':
      return event.waitingFor === undefined ? event.state : `${event.state}, ${WAITING_TEXT[event.waitingFor]}`
    case 'attempt':
      return `attempt ${event.attempt}`
    case 'progress':
      return `progress: ${shown(jsonLine(event.data), EVENT_MAX)}`
    case 'result':
      return 'completed'
    case 'error':
      return `${event.state ?? 'failed'}: ${shown(event.error.message, EVENT_MAX)}  [${event.error.code}]`
  }
}

/** An event for `--json`, with next steps for the given home. */
export function eventJson(output: Output, event: TaskEventInfo): TaskEventInfo {
  return event.type === 'error' ? output.hinted(event) : event
}
