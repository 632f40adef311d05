import type { ServerResponse } from 'node:http'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import test, { type Assert } from 'brittle'
import { z } from 'zod'
import { eventually } from '../../../support/agents/eventually.js'
import { recordedRun } from '../../../support/agents/task.js'
import { FakeStore } from '../../../support/fake-store.js'
import { httpServer, type HttpServer } from '../../../support/mcp/imported-http-server.js'
import { failureOf, importedScene, type Scripted, toolsOf } from '../../../support/mcp/imported-scene.js'

function named(server: HttpServer, more: Partial<Scripted> = {}): Scripted {
  const address = { kind: 'http', url: server.url, headers: { authorization: 'Bearer of-the-test' } } as const
  return { name: 'web', plan: { tools: [] }, address, ...more }
}

test('a server on HTTP is imported like a program, and gets the headers of the config', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const scene = await importedScene(t, [named(server)])
  await scene.ready('web')
  t.alike(await scene.call('web', 'echo', { text: 'hi' }), { ok: true, result: 'echo: hi' })
  t.ok(server.seen.every(({ headers }) => headers.authorization === 'Bearer of-the-test'))
  await scene.close()
  t.is(server.count('DELETE'), 1, 'the session is ended when the node closes')
})

test('a session that the server forgot is begun anew, and the call that found out runs once', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const scene = await importedScene(t, [named(server)])
  await scene.ready('web')
  server.forget()
  t.alike(await scene.call('web', 'echo', { text: 'again' }), { ok: true, result: 'echo: again' })
  t.is(server.count('initialize'), 2)
  t.is(server.count('tools/call'), 2, 'once refused, once done')
})

test('Retry-After of a server that has enough is passed on, and nothing is tried again', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const scene = await importedScene(t, [named(server, { spec: { idempotent: ['echo'] } })])
  await scene.ready('web')
  server.instead = (rpc, _message, response) => {
    if (rpc === 'tools/call') response.writeHead(429, { 'retry-after': '30' }).end('slow down')
    return rpc === 'tools/call'
  }
  const outcome = await scene.call('web', 'echo', { text: 'hi' })
  t.ok(/refused the call, and nothing was done: the server answered with HTTP 429/.test(failureOf(t, outcome)))
  t.is(outcome.ok ? null : outcome.retryable, true)
  t.alike(outcome.ok ? null : outcome.data, { retryAfter: 30 })
  t.is(server.count('tools/call'), 1)
  t.is(scene.info('web').state, 'ready')
})

test('each of two active calls gets its own Retry-After, and a call whose refusal has none gets none', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const refused: ServerResponse[] = []
  let heads = 0
  const send: typeof fetch = async (url, init) => {
    const response = await fetch(url, init)
    // Both heads are there before either refusal has been read to its end.
    if (response.status === 429 && ++heads === 2) setImmediate(() => refused.forEach((one) => one.end()))
    return response
  }
  const scene = await importedScene(t, [named(server, { fetch: send })])
  await scene.ready('web')
  server.instead = (rpc, _message, response) => {
    if (rpc !== 'tools/call') return false
    refused.push(response.writeHead(429, refused.length === 0 ? { 'retry-after': '30' } : {}))
    response.write('slow down')
    return true
  }
  const outcomes = await Promise.all(['a', 'b'].map((text) => scene.call('web', 'echo', { text })))
  const told = outcomes.map((outcome) => (outcome.ok ? 'done' : JSON.stringify(outcome.data ?? null)))
  t.alike(told.toSorted(), ['null', '{"retryAfter":30}'])
})

test('a call that breaks off, or that the server fails at, may have run and is not repeated', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo', 'other') })
  const scene = await importedScene(t, [named(server, { spec: { idempotent: ['other'] } })])
  await scene.ready('web')
  let calls = 0
  server.instead = (rpc, _message, response) => {
    if (rpc !== 'tools/call') return false
    if (++calls % 2 === 1) response.destroy()
    else response.writeHead(500).end('broken')
    return true
  }
  t.ok(/may have run/.test(failureOf(t, await scene.call('web', 'echo', { text: 'a' }))))
  t.ok(/may have run.*HTTP 500/.test(failureOf(t, await scene.call('web', 'echo', { text: 'b' }))))
  t.is(calls, 2)
  t.ok(/may have run/.test(failureOf(t, await scene.call('web', 'other', { text: 'c' }))))
  t.is(calls, 4, 'a tool that the config calls idempotent is repeated once')
})

test('a tool list with an ETag is requested by it, and 304 confirms the known list', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const scene = await importedScene(t, [named(server)])
  let tag = '"one"'
  const known: unknown[] = []
  server.instead = (rpc, message, response) => {
    if (rpc !== 'tools/list') return false
    const asked = server.seen.at(-1)?.headers['if-none-match']
    known.push(asked ?? null)
    if (asked === tag) response.writeHead(304).end()
    else {
      response.writeHead(200, { 'content-type': 'application/json', etag: tag })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { tools: server.tools } }))
    }
    return true
  }
  await scene.ready('web')
  await scene.imported.refresh('web', null)
  await scene.imported.refresh('web', null)
  const first = known.indexOf('"one"')
  t.ok(first >= 0 && known.slice(first).every((one) => one === '"one"'), JSON.stringify(known))
  t.is(scene.info('web').state, 'ready')
  t.is(scene.info('web').change, null)
  tag = '"two"'
  server.tools = toolsOf('echo', 'more')
  await scene.imported.refresh('web', null)
  t.alike(scene.info('web').change?.added, ['more'])
})

test('a server that is offline keeps its agent by the list that the home has, and is back by itself', async (t: Assert) => {
  const store = new FakeStore()
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const first = await importedScene(t, [named(server)], { store })
  await first.ready('web')
  await first.close()
  await server.close()
  const scene = await importedScene(t, [named(server)], { store })
  t.is(scene.agents().length, 1)
  t.ok(/nothing was done/.test(failureOf(t, await scene.call('web', 'echo', { text: 'hi' }))))
  await httpServer(t, { tools: toolsOf('echo'), port: Number(new URL(server.url).port) })
  await scene.ready('web')
  t.alike(await scene.call('web', 'echo', { text: 'hi' }), { ok: true, result: 'echo: hi' })
})

test('a server that a call cannot reach has failed, and is ready when it answers again', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  let isGone = false
  const send: typeof fetch = async (url, init) => {
    if (!isGone) return await fetch(url, init)
    throw new TypeError('fetch failed', {
      cause: Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    })
  }
  const scene = await importedScene(t, [named(server, { fetch: send })])
  await scene.ready('web')
  isGone = true
  const outcome = await scene.call('web', 'echo', { text: 'hi' })
  t.ok(/nothing was done/.test(failureOf(t, outcome)))
  t.is(outcome.ok ? null : outcome.retryable, true)
  const { state, lastError } = scene.info('web')
  t.ok(state !== 'ready' && /ECONNREFUSED/.test(lastError ?? ''), `${state}: ${lastError}`)
  t.is(scene.imported.problems()[0]?.code, 'TOOL_SERVER_FAILED')
  isGone = false
  await scene.ready('web')
  t.alike(scene.imported.problems(), [])
  t.alike(await scene.call('web', 'echo', { text: 'back' }), { ok: true, result: 'echo: back' })
})

test('a server that is gone in the middle of a call is found to have failed', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const scene = await importedScene(t, [named(server)])
  await scene.ready('web')
  let isGone = false
  server.instead = (rpc) => {
    if (rpc === 'tools/call') void server.close().then(() => (isGone = true))
    return rpc === 'tools/call'
  }
  t.ok(/may have run/.test(failureOf(t, await scene.call('web', 'echo', { text: 'hi' }))))
  await eventually(() => isGone && scene.info('web').lastError !== null)
  t.not(scene.info('web').state, 'ready')
})

test('bodies and streams without end are cut, and the server is used on', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const scene = await importedScene(t, [named(server, { spec: { maxOutputBytes: 50_000 } })])
  await scene.ready('web')
  let how: 'body' | 'event' | 'events' = 'body'
  server.instead = (rpc, message, response) => {
    if (rpc !== 'tools/call' || (message['params'] as { arguments: { text: string } }).arguments.text !== 'bad')
      return false
    response.writeHead(200, { 'content-type': how === 'body' ? 'application/json' : 'text/event-stream' })
    const event = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n`
    const part = how === 'events' ? event.repeat(100) : how === 'event' ? 'data: x' : 'x'.repeat(10_000)
    const write = (): void => {
      while (response.write(part));
      response.once('drain', write)
    }
    response.on('error', () => {})
    write()
    return true
  }
  for (const kind of ['body', 'event', 'events'] as const) {
    how = kind
    const failure = failureOf(t, await scene.call('web', 'echo', { text: 'bad' }))
    t.ok(/more than 50000 bytes|floods this node/.test(failure), `${kind}: ${failure}`)
    await scene.ready('web')
    t.alike(await scene.call('web', 'echo', { text: 'good' }), { ok: true, result: 'echo: good' }, kind)
  }
})

/** Answers the request for the stream of changes by what is given. */
function stream(server: HttpServer, serve: (response: ServerResponse) => void): void {
  server.instead = (rpc, _message, response) => {
    if (rpc !== 'GET') return false
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    serve(response)
    return true
  }
}

test('a long stream whose lines end otherwise is no event without end', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const data = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/message',
    params: { level: 'info', data: 'x'.repeat(20_000) }
  })
  let asked = 0
  let isWritten = false
  stream(server, (response) => {
    asked++
    // Ends that are cut in two by the network, too.
    const parts = Array.from({ length: 20 }, () => [`data: ${data}\r`, '\n\r', '\n']).flat()
    const next = (): void => {
      const part = parts.shift()
      if (part === undefined) isWritten = true
      else response.write(part, () => setImmediate(next))
    }
    next()
  })
  const scene = await importedScene(t, [named(server, { spec: { maxOutputBytes: 50_000 } })])
  await scene.ready('web')
  await eventually(() => isWritten)
  t.alike(await scene.call('web', 'echo', { text: 'good' }), { ok: true, result: 'echo: good' })
  t.alike([asked, scene.info('web').restarts, scene.info('web').lastError], [1, 0, null])
})

test('a flood of events whose lines end otherwise is one', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  let isOver = false
  stream(server, (response) => {
    const part =
      `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\r\n\r\n`.repeat(20)
    const write = (): void => {
      while (!isOver && response.write(part));
      if (!isOver) response.once('drain', write)
    }
    response.on('error', () => {}).on('close', () => (isOver = true))
    write()
  })
  const scene = await importedScene(t, [named(server)])
  await eventually(() => isOver)
  await eventually(() => /floods this node/.test(scene.info('web').lastError ?? ''))
  t.pass('cut')
})

test('a server that ends its stream and asks to be asked at once is asked a second later', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const asked: number[] = []
  stream(server, (response) => {
    asked.push(performance.now())
    response.end('retry: 0\nid: 1\ndata:\n\n')
  })
  await importedScene(t, [named(server)])
  await eventually(() => asked.length >= 2)
  const [first = 0, second = 0] = asked
  t.ok(second - first > 900, `${second - first} ms`)
})

test('a server that is no MCP server is reported with its answer', async (t: Assert) => {
  const server = await httpServer(t)
  server.instead = (_rpc, _message, response) => {
    response.writeHead(401, { 'content-type': 'text/html' }).end('<html>log in</html>')
    return true
  }
  const scene = await importedScene(t, [named(server)])
  await eventually(() => scene.info('web').lastError !== null)
  t.ok(/401/.test(scene.info('web').lastError ?? ''), scene.info('web').lastError ?? '')
})

test('a call that is canceled is given up at once', async (t: Assert) => {
  const server = await httpServer(t, { tools: toolsOf('echo') })
  const scene = await importedScene(t, [named(server)])
  await scene.ready('web')
  server.instead = (rpc) => rpc === 'tools/call'
  const run = recordedRun()
  const call = scene.call('web', 'echo', { text: 'a' }, run)
  await eventually(() => server.count('tools/call') === 1)
  run.abort()
  t.ok(failureOf(t, await call).startsWith('CANCELED'))
})

test('the official server of the newer protocol is spoken to in it on HTTP', async (t: Assert) => {
  const seen: (string | null)[] = []
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'modern', version: '1.0.0' })
      const word = z.object({ text: z.string() })
      server.registerTool('shout', { description: 'Shouts.', inputSchema: word, outputSchema: word }, ({ text }) => ({
        content: [{ type: 'text', text: text.toUpperCase() }],
        structuredContent: { text: text.toUpperCase() }
      }))
      return server
    },
    { legacy: 'reject' }
  )
  t.teardown(() => handler.close())
  const address = { kind: 'http', url: 'http://127.0.0.1:9/mcp', headers: { authorization: 'Bearer x' } } as const
  const send: typeof fetch = (url, init) => {
    const request = new Request(url, init)
    seen.push(request.headers.get('mcp-protocol-version'))
    return handler.fetch(request)
  }
  const scene = await importedScene(t, [{ name: 'web', plan: { tools: [] }, address, fetch: send }])
  await scene.ready('web')
  t.alike(await scene.call('web', 'shout', { text: 'hello' }), { ok: true, result: { text: 'HELLO' } })
  t.ok(
    seen.every((version) => version === '2026-07-28'),
    JSON.stringify(seen)
  )
})

test('null is absent in lists and results of a server, as JSON or as events', async (t: Assert) => {
  for (const isStream of [false, true]) {
    const server = await httpServer(t, { tools: toolsOf('echo') })
    server.instead = (rpc, message, response) => {
      const results: Readonly<Record<string, object>> = {
        'tools/list': {
          nextCursor: null,
          _meta: null,
          tools: [
            {
              name: 'echo',
              title: null,
              description: null,
              inputSchema: { type: 'object' },
              outputSchema: null,
              annotations: null
            }
          ]
        },
        'tools/call': {
          isError: null,
          structuredContent: null,
          content: [{ type: 'text', text: 'hi', annotations: null, _meta: null }],
          _meta: null
        }
      }
      const result = results[rpc]
      if (result === undefined) return false
      const answer = JSON.stringify({
        jsonrpc: '2.0',
        id: (message as { readonly id?: unknown }).id,
        result,
        error: null
      })
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
      response.end(isStream ? `event: message\ndata: ${answer}\n\n` : answer)
      return true
    }
    const scene = await importedScene(t, [named(server)])
    await scene.ready('web')
    t.alike(await scene.call('web', 'echo', { text: 'x' }), { ok: true, result: 'hi' }, isStream ? 'events' : 'JSON')
    await scene.close()
  }
})
