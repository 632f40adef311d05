import type { Assert } from 'brittle'
import { Client, type ClientOptions } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import path from 'node:path'
import { valueOf } from './mcp.js'
import { type LocalNode, ROOT, type TestMesh } from './nodes.js'

/** What a tool answered: its JSON, or its text where that is none, or the error it gave. */
export interface ToolAnswer {
  readonly isError: boolean
  readonly value: unknown
}

/** A client of others that talks to a node over `a2a-node mcp serve`. */
export interface McpClient {
  readonly tools: () => Promise<readonly string[]>
  readonly call: (
    name: string,
    args: Readonly<Record<string, unknown>>,
    options?: { readonly signal?: AbortSignal; readonly onProgress?: (message: string) => void }
  ) => Promise<ToolAnswer>
  readonly close: () => Promise<void>
}

/** The official client of SDK v2 on a node; ends with the test. */
export async function mcpClient(
  t: Assert,
  mesh: Pick<TestMesh, 'env'>,
  node: LocalNode,
  options: ClientOptions = {}
): Promise<McpClient & { readonly sdk: Client }> {
  const client = new Client({ name: 'test', version: '1.0.0' }, options)
  await client.connect(new StdioClientTransport(serving(mesh, node)))
  t.teardown(() => client.close(), { order: -1 })
  return {
    sdk: client,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, { signal, onProgress } = {}) =>
      answerOf(
        await client.callTool(
          { name, arguments: { ...args } },
          {
            ...(signal === undefined ? {} : { signal }),
            ...(onProgress === undefined ? {} : { onprogress: ({ message = '' }) => onProgress(message) })
          }
        )
      ),
    close: () => client.close()
  }
}

/** The official client of SDK v1 on a node; ends with the test. */
export async function oldMcpClient(t: Assert, mesh: Pick<TestMesh, 'env'>, node: LocalNode): Promise<McpClient> {
  const client = new OldClient({ name: 'test', version: '1.0.0' })
  await client.connect(new OldStdioTransport(serving(mesh, node)))
  t.teardown(() => client.close(), { order: -1 })
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args) => answerOf(await client.callTool({ name, arguments: { ...args } })),
    close: () => client.close()
  }
}

/** Starts `mcp serve` of a node. */
export function serving(
  { env }: Pick<TestMesh, 'env'>,
  { home }: LocalNode
): { command: string; args: string[]; env: Record<string, string>; stderr: 'ignore' } {
  return {
    command: process.execPath,
    args: [path.join(ROOT, 'bin', 'a2a-node.js'), '--home', home, 'mcp', 'serve'],
    env: { ...env },
    stderr: 'ignore'
  }
}

function answerOf(result: unknown): ToolAnswer {
  const { content, isError } = result as { content: readonly { type: string; text?: string }[]; isError?: boolean }
  const text = content.find(({ type }) => type === 'text')?.text ?? 'null'
  return { isError: isError === true, value: valueOf(text) }
}
