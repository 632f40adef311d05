#!/usr/bin/env node
// A small MCP server on stdio for tests: its tools and its manners come from a JSON file that the test writes anew at
// will.
// {"tools": [...], "results": {...}, "era": "legacy"|"modern", "manners": {...}}. Beside tools: "instructions",
// "resources", "templates", "prompts" (lists), "contents" (by URI), "messages" (by prompt), "values" (of completions).
// Arguments: the file, then a file to which each call is noted.
import fs from 'node:fs'
import readline from 'node:readline'

const [, , file, notes] = process.argv
const plan = () => JSON.parse(fs.readFileSync(file, 'utf8'))
const note = (text) => (notes === undefined ? undefined : fs.appendFileSync(notes, `${text}\n`))
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

note(`start ${process.pid}`)
if (plan().stubborn === true) for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {})
if (plan().exit !== undefined) {
  process.stderr.write('cannot go on: no licence\n')
  process.exit(plan().exit)
}
if (plan().garbage !== undefined)
  for (let i = 0; i < plan().garbage; i++) process.stdout.write(`loading part ${i} ...\n`)

const subscribed = new Set()
let last = plan()
const watcher = fs.watchFile(file, { interval: 20 }, () => {
  const [before, now] = [last, plan()]
  last = now
  if (now.announce === false) return
  const differs = (member) => JSON.stringify(before[member]) !== JSON.stringify(now[member])
  if (differs('resources') || differs('templates')) send({ method: 'notifications/resources/list_changed' })
  if (differs('prompts')) send({ method: 'notifications/prompts/list_changed' })
  for (const uri of subscribed)
    if (JSON.stringify(before.contents?.[uri]) !== JSON.stringify(now.contents?.[uri]))
      send({ method: 'notifications/resources/updated', params: { uri } })
  send({ method: 'notifications/tools/list_changed' })
})
watcher.unref()

const calls = {
  echo: (args) => ({ content: [{ type: 'text', text: String(args.text ?? '') }] }),
  add: ({ a, b }) => ({
    content: [{ type: 'text', text: JSON.stringify({ sum: a + b }) }],
    structuredContent: { sum: a + b }
  }),
  lie: () => ({ content: [], structuredContent: { sum: 'not a number' } }),
  fail: () => ({ isError: true, content: [{ type: 'text', text: 'the disk is full' }], _meta: { retryAfter: 7 } }),
  picture: () => ({
    content: [
      { type: 'text', text: 'look' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    ]
  }),
  huge: ({ bytes }) => ({ content: [{ type: 'text', text: 'x'.repeat(bytes) }] }),
  env: () => ({ content: [{ type: 'text', text: JSON.stringify({ env: process.env, cwd: process.cwd() }) }] }),
  pid: () => ({ content: [{ type: 'text', text: String(process.pid) }] }),
  deep: () => ({ content: [], structuredContent: JSON.parse(`${'{"a":'.repeat(60)}1${'}'.repeat(60)}`) }),
  die: () => process.exit(3),
  never: () => null,
  endless: () => {
    const write = () => {
      while (process.stdout.write('y'.repeat(65_536)));
      process.stdout.once('drain', write)
    }
    write()
    return null
  },
  flood: () => {
    const write = () => {
      while (
        process.stdout.write(
          '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
        )
      );
      process.stdout.once('drain', write)
    }
    write()
    return null
  },
  answers: () => {
    const write = () => {
      while (process.stdout.write('{"jsonrpc":"2.0","id":987654321,"result":{}}\n'));
      process.stdout.once('drain', write)
    }
    write()
    return null
  },
  asks: () => {
    process.stdin.pause()
    for (let i = 0; i < 4000; i++) send({ id: `${i}`, method: 'ping' })
    return null
  },
  changes: () => {
    for (let i = 0; i < 500; i++) send({ method: 'notifications/tools/list_changed' })
    return { content: [] }
  },
  steps: (_args, token) => {
    for (let i = 1; i <= 3; i++)
      if (token !== undefined)
        send({ method: 'notifications/progress', params: { progressToken: token, progress: i, total: 3 } })
    return { content: [{ type: 'text', text: 'done' }] }
  },
  ticks: ({ count, everyMs }, token, answer) => {
    let progress = 0
    const timer = setInterval(() => {
      progress++
      send({ method: 'notifications/progress', params: { progressToken: token, progress, total: count } })
      if (progress < count) return
      clearInterval(timer)
      answer({ content: [{ type: 'text', text: 'done' }] })
    }, everyMs)
    return null
  }
}

/** What is answered for resources and prompts; null: the method is another. */
function contextAnswer(method, params) {
  const { resources, templates = [], prompts, contents = {}, messages = {}, values, endlessPages } = plan()
  const next = endlessPages === true ? { nextCursor: String(Math.random()) } : {}
  const missing = { error: { code: -32_002, message: 'no such thing' } }
  if (method === 'resources/list' && resources !== undefined) {
    note('list resources')
    return { result: { resources, ...next } }
  }
  if (method === 'resources/templates/list') return { result: { resourceTemplates: templates } }
  if (method === 'prompts/list' && prompts !== undefined) return { result: { prompts, ...next } }
  if (method === 'resources/read') {
    note(`read ${params.uri}`)
    const found = contents[params.uri]
    return found === undefined ? missing : { result: { contents: found } }
  }
  if (method === 'prompts/get') {
    const found = messages[params.name]
    const text = JSON.stringify(found ?? null).replaceAll(/\$(\w+)/g, (_, name) => params.arguments?.[name] ?? '')
    return found === undefined ? missing : { result: { description: 'filled in', messages: JSON.parse(text) } }
  }
  if (method === 'completion/complete' && values !== undefined)
    return { result: { completion: { values: values.filter((one) => one.includes(params.argument.value)) } } }
  if (method === 'resources/subscribe' || method === 'resources/unsubscribe') {
    note(`${method} ${params.uri}`)
    if (contents[params.uri] === undefined) return missing
    if (method === 'resources/subscribe') subscribed.add(params.uri)
    else subscribed.delete(params.uri)
    return { result: {} }
  }
  return null
}

function handle(message) {
  const { id, method, params } = message
  if (id === undefined) return note(`${method}`)
  if (plan().deaf === true || plan().deafTo === method) return undefined
  if (method === 'initialize')
    return send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: {
          tools: { listChanged: true },
          ...(plan().resources === undefined ? {} : { resources: { listChanged: true, subscribe: true } }),
          ...(plan().prompts === undefined ? {} : { prompts: { listChanged: true } }),
          ...(plan().values === undefined ? {} : { completions: {} })
        },
        serverInfo: { name: 'test', version: '1.0.0' },
        instructions: plan().instructions
      }
    })
  if (method === 'ping') return send({ id, result: {} })
  if (method === 'tools/list') {
    note('list')
    const { tools, pages, endlessPages } = plan()
    // `pages`: of tools, by their cursors; '' is the first one.
    const page = pages?.[params?.cursor ?? '']
    if (pages !== undefined) return send({ id, result: page ?? { tools: [] } })
    return send({ id, result: { tools, ...(endlessPages === true ? { nextCursor: String(Math.random()) } : {}) } })
  }
  if (method === 'tools/call') {
    note(`call ${params.name}`)
    // `results`: of tools, by their names, as they are to be.
    const planned = plan().results?.[params.name]
    if (planned !== undefined) return send({ id, result: planned })
    const result = (calls[params.name.split('/').at(-1)] ?? (() => null))(
      params.arguments ?? {},
      params['_meta']?.progressToken,
      (late) => send({ id, result: late })
    )
    return result === null ? undefined : send({ id, result })
  }
  const answer = contextAnswer(method, params)
  if (answer !== null) return send({ id, ...answer })
  if (plan().diesOnUnknown === true) process.exit(9)
  return send({ id, error: { code: -32_601, message: 'Method not found' } })
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  try {
    handle(JSON.parse(line))
  } catch (error) {
    process.stderr.write(`${error.stack}\n`)
  }
})
process.stdin.on('end', () => {
  if (plan().stubborn !== true) process.exit(0)
})
if (plan().stubborn === true) setInterval(() => {}, 1000)
