import test, { type Assert } from 'brittle'
import { serverAddress } from '../../src/compose/server-address.js'
import { mcpServersSchema } from '../../src/config/mcp-servers.js'
import { failsWith } from '../support/fails.js'

const ENV = {
  HOST: 'example.org',
  BAD: 'ftp://example.org/s3cret',
  PASSWORD: 'https://me:s3cret@example.org/',
  LINES: 's3cret\nx',
  TOOL: '/opt/t'
}

/** The address of one server of the config. */
function addressOf(server: object) {
  const setting = mcpServersSchema.parse({ files: server })['files']
  if (setting === undefined) throw new Error('no server')
  return serverAddress('files', setting, { env: ENV, dir: '/home/node' })
}

test('references are resolved in program, arguments, directory, variables, address and headers of a server', (t: Assert) => {
  const program = {
    command: '${TOOL}',
    args: ['--at=${HOST}', '$${HOST}', 'env:HOST'],
    cwd: 'in/${HOST}',
    env: { A: 'env:HOST', B: '${NONE:-b}' }
  }
  t.alike(addressOf(program), {
    kind: 'stdio',
    program: {
      command: ['/opt/t', '--at=example.org', '${HOST}', 'env:HOST'],
      env: { A: 'example.org', B: 'b' },
      cwd: '/home/node/in/example.org'
    }
  })
  t.alike(addressOf({ url: 'https://${HOST}/mcp', headers: { authorization: 'Bearer ${HOST}' } }), {
    kind: 'http',
    url: 'https://example.org/mcp',
    headers: { authorization: 'Bearer example.org' }
  })
})

test('a reference that makes a value unusable is refused with its key, and no error shows a value', async (t: Assert) => {
  for (const [server, words] of [
    [{ url: '${BAD}' }, 'mcp.servers.files: url: must be an http or https address'],
    [{ url: '${PASSWORD}' }, 'mcp.servers.files: url: must not hold a password'],
    [{ url: 'https://${NONE}/' }, 'mcp.servers.files: url: the variable NONE is not set'],
    [{ url: 'https://h/', headers: { key: '${LINES}' } }, 'mcp.servers.files: key: a variable of it holds'],
    [{ command: 'x', args: ['${NONE}'] }, 'mcp.servers.files: command: the variable NONE'],
    [{ command: 'x', cwd: '${NONE}' }, 'mcp.servers.files: cwd: the variable NONE'],
    [{ command: 'x', env: { A: '${NONE}' } }, 'mcp.servers.files: A: the variable NONE'],
    [{ command: '${EMPTY:-}' }, 'mcp.servers.files: command: is empty']
  ] as const) {
    const { message } = await failsWith(t, 'CONFIG_INVALID', () => Promise.resolve().then(() => addressOf(server)))
    t.ok(message.startsWith(words) && !message.includes('s3cret'), message)
  }
})
