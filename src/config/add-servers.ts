import { isDeepStrictEqual } from 'node:util'
import { NodeError } from '../kit/errors.js'
import { isRecord } from '../kit/json.js'

/**
 * Adds entries to `mcp.servers` of the text of a config file. Comments and all other settings stay; none of the names
 * may be there.
 * @throws NodeError CONFIG_INVALID when the result would say something else
 */
export async function withServers(text: string, servers: Readonly<Record<string, unknown>>): Promise<string> {
  const changed = await changedText(text, servers).catch(() => null)
  if (changed !== null) return changed
  throw new NodeError(
    'CONFIG_INVALID',
    'the config file is written in a way that takes no further servers; add them by hand',
    {
      next: ['a2a-node config path']
    }
  )
}

/**
 * The text with the servers; null when it would say something else. Rejects for YAML that cannot be read, such as a
 * second document.
 */
async function changedText(text: string, servers: Readonly<Record<string, unknown>>): Promise<string | null> {
  const yaml = await import('yaml')
  const doc = yaml.parseDocument(text)
  const before = valueOf(doc.toJS({ maxAliasCount: 0 }))
  let after: string
  if (
    before['mcp'] === undefined &&
    (doc.contents === null || (yaml.isMap(doc.contents) && doc.contents.flow !== true))
  ) {
    const gap = text === '' || text.endsWith('\n') ? '' : '\n'
    after = `${text}${gap}${yaml.stringify({ mcp: { servers } }, { lineWidth: 0 })}`
  } else {
    if (!yaml.isMap(doc.get('mcp'))) doc.set('mcp', doc.createNode({}))
    if (!yaml.isMap(doc.getIn(['mcp', 'servers']))) doc.setIn(['mcp', 'servers'], doc.createNode({}))
    for (const [name, entry] of Object.entries(servers)) doc.setIn(['mcp', 'servers', name], doc.createNode(entry))
    after = doc.toString({ lineWidth: 0 })
  }
  const mcp = valueOf(before['mcp'])
  const wanted = { ...before, mcp: { ...mcp, servers: { ...valueOf(mcp['servers']), ...servers } } }
  return isDeepStrictEqual(yaml.parse(after, { maxAliasCount: 0 }), wanted) ? after : null
}

function valueOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}
