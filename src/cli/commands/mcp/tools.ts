import { NodeError } from '../../../kit/errors.js'
import { nearest, shown } from '../../../kit/text.js'
import type { ImportedServerInfo, ImportedToolInfo } from '../../../ports/imported-tools.js'
import type { Action, CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { durationOption, given, jsonArgument, textOption } from '../../options.js'
import type { Output } from '../../terminal/output.js'
import { type Cell, plural, printTable } from '../../terminal/render.js'
import { awaitReply, progressLevel } from '../../reply.js'
import { readStdin } from '../../stdin.js'

/** Bytes of an input on stdin: the largest value of `tools.maxPayloadBytes`. */
const INPUT_MAX = 16_777_216
/** Tools that an error names. */
const NAMED = 20

/** `tools ls`. */
export const listTools: Action = async ({ output, api }) => {
  const { servers } = await api().call('tools.list', {})
  await printServers(output, servers)
  return EXIT.ok
}

/** `tools refresh [server]`: exit 1 when no server that was asked is ready, 8 when some are not. */
export const refreshTools: Action = async ({ output, api }, [server], options) => {
  const { servers } = await api().call('tools.refresh', given({ server, accept: textOption(options, 'accept') }))
  await printServers(output, servers)
  const failed = servers.filter(({ state }) => state !== 'ready').length
  if (failed === 0) return EXIT.ok
  return failed === servers.length ? EXIT.failed : EXIT.partly
}

/** `tools call <server> <tool> <json>`. */
export const callTool: Action = async (context, [server = '', name = '', json = ''], options) => {
  const level = progressLevel(context, options)
  const input = jsonArgument(
    json === '-' ? await readStdin(INPUT_MAX, { again: context.output.typed }) : json,
    'the input'
  )
  const tool = await findTool(context, server, name)
  const { node } = await context.api().call('node.info', {})
  // With the node: another one may have a server of the same name.
  const params = {
    agent: `${server}@${node.id}`,
    capability: tool.capability,
    input,
    ...given({ timeoutMs: durationOption(options, 'timeout') })
  }
  return await awaitReply(context, { name: 'message.call', params, level })
}

/** @throws NodeError TOOL_SERVER_NOT_FOUND, CAPABILITY_NOT_FOUND with the tools there are */
async function findTool({ api }: Pick<CommandContext, 'api'>, server: string, name: string): Promise<ImportedToolInfo> {
  const { servers } = await api().call('tools.list', {})
  const found = servers.find((one) => one.name === server)
  if (found === undefined) {
    const names = servers.map((one) => one.name)
    const hint =
      names.length === 0 ? ': none is configured' : `; there ${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}`
    throw new NodeError('TOOL_SERVER_NOT_FOUND', `no MCP server "${shown(server)}" in the config of this node${hint}`, {
      data: { servers: names }
    })
  }
  const tool = found.tools.find((one) => one.name === name) ?? found.tools.find((one) => one.capability === name)
  if (tool?.offered === true) return tool
  const names = found.tools.flatMap((one) => (one.offered ? [one.name] : []))
  const near = nearest(name, names)
  const hint =
    near.length > 0
      ? `; did you mean ${near.join(' or ')}?`
      : names.length === 0
        ? `; it offers none now${whyNone(found)}`
        : `; it has ${names
            .slice(0, NAMED)
            .map((one) => shown(one))
            .join(', ')}`
  const reason =
    tool === undefined
      ? `${server} has no tool "${shown(name)}"`
      : `${server} does not offer "${shown(name)}": ${tool.reason ?? ''}`
  throw new NodeError('CAPABILITY_NOT_FOUND', `${reason}${hint}`, {
    data: { tools: names },
    next: ['a2a-node tools ls']
  })
}

/** The text of `tools ls` for a server that is not ready. */
function whyNone({ state, lastError }: ImportedServerInfo): string {
  if (state === 'ready') return ''
  return lastError === null ? ` (${state})` : ` (${state}: ${shown(lastError, 1000)})`
}

async function printServers(output: Output, servers: readonly ImportedServerInfo[]): Promise<void> {
  if (output.json) return output.object('tools@1', { servers })
  if (servers.length === 0) return output.print('no MCP servers in the config (mcp.servers)')
  const rows = servers.flatMap((server) =>
    server.tools.length === 0 ? [emptyRow(server)] : server.tools.map((tool) => toolRow(server, tool))
  )
  await printTable(output, ['SERVER', 'TOOL', 'AGENT', 'STATE', 'DESCRIPTION'], rows)
  for (const server of servers) for (const line of notesOf(output, server)) output.note(line)
}

function emptyRow({ name, state, lastError }: ImportedServerInfo): Cell[] {
  return [{ text: name, style: 'bold' }, '-', '-', stateCell(state), lastError ?? '-']
}

function toolRow({ name, agent, state }: ImportedServerInfo, tool: ImportedToolInfo): Cell[] {
  const about: Cell = tool.offered ? tool.description : { text: tool.reason ?? '', style: 'dim' }
  return [
    { text: name, style: 'bold' },
    tool.name,
    agent,
    tool.offered ? stateCell(state) : { text: 'not offered', style: 'yellow' },
    about
  ]
}

function stateCell(state: ImportedServerInfo['state']): Cell {
  return { text: state, style: state === 'ready' ? 'green' : state === 'failed' ? 'red' : 'yellow' }
}

/** Notes for a person before accepting a list, and the reason of a failed server. */
function notesOf(output: Output, { name, state, lastError, change, listed, pinnedBy }: ImportedServerInfo): string[] {
  const lines: string[] = []
  if (state !== 'ready' && lastError !== null) lines.push(`${name}: ${shown(lastError, 1000)}`)
  if (change === null || listed === null) return lines
  lines.push(`${name} lists other tools than those ${pinnedBy === 'config' ? 'pinned' : 'accepted'}:`)
  lines.push(...change.added.map((tool) => `  + ${shown(tool)}`))
  lines.push(
    ...change.changed.map((one) => `  ~ ${shown(one.name)} (${one.parts.join(', ')}): ${shown(one.description, 1000)}`)
  )
  lines.push(...change.removed.map((tool) => `  - ${shown(tool)}`))
  lines.push(
    `  ${plural(change.added.length + change.changed.length + change.removed.length, 'change')}; to take them: ${output.hint(`a2a-node tools refresh ${name} --accept ${listed}`)}`
  )
  return lines
}
