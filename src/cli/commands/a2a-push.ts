import type { PushConfigInfo, PushList } from '../../ports/push-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import type { Output } from '../output.js'
import { given, isSet } from '../options.js'
import { type Cell, plural, printTable } from '../render.js'
import { agoText } from '../words.js'

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
  else output.print(ids.length === 0 ? 'no notification was given up' : `${plural(ids.length, 'notification')} will be tried now`)
  return EXIT.ok
}

async function printPush(output: Output, { configs, waiting, dead, more }: PushList): Promise<void> {
  if (configs.length === 0) return output.print('no client wants push notifications')
  const now = Date.now()
  const rows = configs.map((one): Cell[] => [one.task, one.id, countOf(waiting, one), countOf(dead, one), one.version, one.url])
  await printTable(output, ['TASK', 'CONFIG', 'WAITING', 'GIVEN UP', 'A2A', 'URL'], rows)
  const notices = [
    ...waiting.map((one): Cell[] => [one.id, one.event, 'waiting', String(one.tries), agoText(one.at, now), one.reason ?? '-']),
    ...dead.map((one): Cell[] => [
      one.id,
      one.event,
      { text: 'given up', style: 'red' },
      String(one.tries),
      agoText(one.at, now),
      one.reason ?? '-'
    ])
  ]
  if (notices.length > 0) {
    output.print('')
    await printTable(output, ['NOTIFICATION', 'EVENT', 'STATE', 'TRIES', 'HAPPENED', 'WHY'], notices)
  }
  if (more) output.note('There is more than is shown here.')
  if (dead.length > 0) output.note(`Try again what was given up: ${output.hint('a2a-node a2a push retry --all')}`)
}

function countOf(rows: readonly { readonly hook: string }[], { hook }: PushConfigInfo): string {
  return String(rows.filter((row) => row.hook === hook).length)
}
