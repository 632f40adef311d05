import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { BackupInfo } from '../../ports/node-api.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet, type Options } from '../options.js'
import { runningNode } from '../running.js'
import { startConfig } from '../start-settings.js'
import { bytesText } from '../words.js'

/** @throws NodeError USAGE for `-`: a backup is read more than once, and is whole or not there at all. */
function fileOf(command: string, file: string): string {
  if (file !== '-') return path.resolve(file)
  throw new NodeError('USAGE', `${command} takes a file, no pipe`, { next: [`a2a-node ${command} <file>`] })
}

/** `backup`: by the node when it runs, else by this process. */
export const backup: Action = async (context, [file = ''], options) => {
  const { output } = context
  const request = { file: fileOf('backup', file), force: isSet(options, 'force') }
  const info =
    (await runningNode(context.paths().socket)) === null
      ? await ofStopped(context, request, options)
      : await context.api().call('node.backup', request)
  if (output.json) output.object('backup@1', info)
  else {
    output.print(
      `backup of ${shown(info.node.name)} (mesh ${shown(info.mesh.name)}): ${info.file}, ${bytesText(info.bytes)}`
    )
    output.note("It holds the node's key: every holder of the file can act as this node. Keep it like a private key.")
  }
  return EXIT.ok
}

async function ofStopped(
  context: CommandContext,
  request: { file: string; force: boolean },
  options: Options
): Promise<BackupInfo> {
  const config = await startConfig(context, options)
  const home = context.paths()
  const { backupHome } = await import('../../maintenance/backup.js')
  return await backupHome({ config, home, name: null, join: null, extraAgentDirs: [], log: null }, request)
}

/** `restore`: makes a home of a backup. */
export const restore: Action = async (context, [file = '']) => {
  const { output } = context
  const home = context.paths()
  const { restoreHome } = await import('../../maintenance/backup.js')
  const info = await restoreHome(home, fileOf('restore', file))
  if (output.json) {
    output.object('restore@1', info)
    return EXIT.ok
  }
  output.print(
    `restored ${shown(info.node.name)} (mesh ${shown(info.mesh.name)}) as of ${info.createdAt} in ${info.home}`
  )
  output.note(
    'It takes the place of every other home of this node once it is started and meets another member of the mesh: one that'
  )
  output.note('runs stops when it hears of that. Two that meet nobody do not know of each other: run one only.')
  output.note(`  try: ${output.hint('a2a-node start')}`)
  return EXIT.ok
}
