import { formatDuration } from '../../kit/units.js'
import type { StatusInfo } from '../../ports/node-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { showWatch } from '../terminal/live.js'
import { isSet } from '../options.js'
import type { Output } from '../terminal/output.js'
import { factLines, plural } from '../terminal/render.js'
import { faultFact, headLines, hintedAll, problemLines, reachFacts, webSocketFacts } from '../terminal/banner.js'
import { providerText, tildePath } from '../words.js'

/** `status`; with `--watch` again at each change. */
export const status: Action = async ({ output, api, env }, _args, options) => {
  const lines = (info: StatusInfo): string[] => statusLines(output, info, env['HOME'])
  if (isSet(options, 'watch'))
    return await showWatch(output, api().watch('node.status', {}), { schema: 'status@1', lines })
  const info = await api().call('node.status', {})
  if (output.json) output.object('status@1', { ...info, problems: hintedAll(output, info.problems) })
  else for (const line of lines(info)) output.print(line)
  return EXIT.ok
}

function reloadText({ at, applied, needRestart, error }: NonNullable<StatusInfo['reload']>): string {
  const done =
    error === null
      ? `reloaded ${at}: ${applied.length === 0 ? 'nothing to apply' : applied.join(', ')}`
      : `not reloaded ${at}`
  return needRestart.length === 0 ? done : `${done}; after a restart: ${needRestart.join(', ')}`
}

function statusLines(output: Output, info: StatusInfo, userHome: string | undefined): string[] {
  const { mesh, tasks, approvals, outbox, agents } = info
  return [
    ...headLines(output, info),
    ...factLines(output, [
      [
        'state',
        {
          text: `${info.state} for ${formatDuration(info.uptimeMs)}, pid ${info.pid}`,
          style: info.state === 'running' ? 'green' : 'yellow'
        }
      ],
      ['home', tildePath(info.home, userHome)],
      ...(info.reload === undefined || info.reload === null ? [] : [['config', reloadText(info.reload)] as const]),
      ['network', info.network],
      ...reachFacts(info),
      ...(info.http === null ? [] : [['http', info.http] as const]),
      ...webSocketFacts(info),
      ...(info.tcp === undefined || info.tcp === null ? [] : [['tcp', info.tcp] as const]),
      ...(info.grpc === undefined ? [] : [['grpc', info.grpc] as const]),
      ...(info.provider === undefined ? [] : [['provider', providerText(info.provider)] as const]),
      ['mesh', `${plural(mesh.members, 'member')}, ${mesh.online} online${trustText(mesh)}`],
      ['agents', `${agents.ready.length} ready${agents.ready.length === 0 ? '' : `: ${agents.ready.join(', ')}`}`],
      ['tasks', `${tasks.running} running, ${tasks.queued} queued`],
      [
        'waiting',
        `${approvals.waiting} for approval${approvals.waiting === 0 ? '' : `: ${output.hint('a2a-node approvals ls')}`}`
      ],
      ['outbox', `${outbox.pending} pending`],
      // The list of problems already has this fault with its next step.
      ...agents.faults.filter((fault) => !info.problems.some((one) => one.message.includes(fault.file))).map(faultFact)
    ]),
    ...problemLines(output, info.problems)
  ]
}

/** How this node regards the other members. */
function trustText({ trust }: StatusInfo['mesh']): string {
  if (trust === undefined || trust.mine + trust.guests === 0) return ''
  return `; of the others ${trust.mine} yours, ${plural(trust.guests, 'guest')}`
}
