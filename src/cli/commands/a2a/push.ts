import type { PushList, PushNoticeInfo } from '../../../ports/push-api.js'
import type { Action } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import type { Output } from '../../terminal/output.js'
import { given, isSet } from '../../options.js'
import { type Cell, plural, printTable, tableLines } from '../../terminal/render.js'
import { agoText } from '../../words.js'

/** `a2a push ls`. */
export const listPush: Action = async ({ output, api }) => {
  const found = await api().call('push.list', {})
  if (output.json) output.object('push@1', { ...found })
  else await printPush(output, found)
  return EXIT.ok
}

/** `a2a push retry [id]`. */
export const retryPush: Action = async ({ output, api }, [id], options) => {
  const { ids } = await api().call('push.retry', given({ id, all: isSet(options, 'all') ? true : undefined }))
  if (output.json) output.object('push-retry@1', { ids })
  else
    output.print(
      ids.length === 0 ? 'no notification was given up' : `${plural(ids.length, 'notification')} will be tried now`
    )
  return EXIT.ok
}

async function printPush(output: Output, { configs, waiting, dead, pushedOut, more }: PushList): Promise<void> {
  if (configs.length === 0) return output.print('no client wants push notifications')
  const rows = configs.map((one): Cell[] => [
    one.task,
    one.id,
    String(one.waiting),
    String(one.givenUp),
    one.version,
    one.url
  ])
  await printTable(output, ['TASK', 'CONFIG', 'WAITING', 'GIVEN UP', 'A2A', 'URL'], rows)
  const notices = [...waiting, ...dead]
  if (notices.length > 0) {
    output.print('')
    for (const line of await noticeLines(output, notices)) output.print(line)
  }
  if (notices.some(({ folded }) => folded > 0))
    output.note('+N: it tells of N events before its own as well, since too many waited.')
  if (pushedOut > 0)
    output.note(`${plural(pushedOut, 'notification')} more were given up and are not kept: there were too many.`)
  if (more) output.note('There is more than is shown here.')
  if (dead.length > 0) output.note(`Retry the dead notifications: ${output.hint('a2a-node a2a push retry --all')}`)
}

/** Two lines for each, so that both fit into 80 columns with their ids whole. */
async function noticeLines(
  output: Output,
  notices: readonly (PushNoticeInfo & { readonly deadAt?: string })[]
): Promise<string[]> {
  const now = Date.now()
  const first = notices.map((one): Cell[] => [
    one.id,
    one.deadAt === undefined ? 'waiting' : { text: 'given up', style: 'red' },
    String(one.tries),
    agoText(one.at, now),
    one.reason ?? '-'
  ])
  const second = notices.map(({ event, folded, task, url }) => [
    `  ${event}${folded === 0 ? '' : ` +${folded}`}`,
    task,
    url ?? '-'
  ])
  const [above, below] = await Promise.all([
    tableLines(output, ['NOTIFICATION', 'STATE', 'TRIES', 'HAPPENED', 'WHY'], first),
    tableLines(output, ['  EVENT', 'TASK', 'URL'], second)
  ])
  return above.flatMap((line, at) => [line, below[at] ?? ''])
}
