import path from 'node:path'
import type { ImportedAddress } from '../adapters/mcp/imported/imported-connection.js'
import { webUrlFault } from '../config/entry-values.js'
import type { McpServerSetting } from '../config/mcp-servers.js'
import { NodeError } from '../kit/errors.js'
import { type EnvValues, resolvedHeader, resolvedValue } from '../config/env-values.js'

/**
 * Address of an MCP server with its secrets. `dir`: base of its directory.
 * @throws NodeError CONFIG_INVALID for an unset variable or an unusable result
 */
export function serverAddress(
  name: string,
  setting: Pick<McpServerSetting, 'command' | 'cwd' | 'env' | 'headers' | 'url'>,
  { env, dir }: { readonly env: EnvValues; readonly dir: string }
): ImportedAddress {
  const { command, url, cwd } = setting
  const resolved = (key: string, value: string): string => resolvedValue(value, env, `mcp.servers.${name}: ${key}`)
  // An argument or a path that begins with env: is a text.
  const expanded = (key: string, value: string): string => (value.includes('${') ? resolved(key, value) : value)
  const given = (values: Readonly<Record<string, string>>, valueOf = resolved): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, valueOf(key, value)]))
  const header = (key: string, value: string): string => resolvedHeader(value, env, `mcp.servers.${name}: ${key}`)
  if (url !== null)
    return { kind: 'http', url: checkedUrl(name, expanded('url', url)), headers: given(setting.headers, header) }
  const [program = '', ...args] = (command ?? []).map((one) => expanded('command', one))
  if (program === '')
    throw new NodeError('CONFIG_INVALID', `mcp.servers.${name}: command: is empty`, { next: ['a2a-node config check'] })
  const place = path.resolve(dir, expanded('cwd', cwd ?? '.'))
  return { kind: 'stdio', program: { command: [program, ...args], env: given(setting.env), cwd: place } }
}

/**
 * An address after its references are resolved.
 * @throws NodeError CONFIG_INVALID, without the address: it may hold a secret
 */
function checkedUrl(name: string, url: string): string {
  const fault = webUrlFault(url)
  if (fault === null) return url
  throw new NodeError('CONFIG_INVALID', `mcp.servers.${name}: url: ${fault}`, { next: ['a2a-node config check'] })
}
