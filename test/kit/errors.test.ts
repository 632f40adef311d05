import fs from 'node:fs'
import path from 'node:path'
import test from 'brittle'
import fc from 'fast-check'
import { asNodeError, ERROR_CODES, isErrorCode, messageOf, NodeError, passingConflict } from '../../src/kit/errors.js'
import type { ErrorCode } from '../../src/kit/errors.js'
import { holds } from '../support/holds.js'

const codes = Object.keys(ERROR_CODES).filter(isErrorCode)

test('an error takes retryable and next steps from the table', (t) => {
  const error = new NodeError('NODE_NOT_RUNNING', 'no node answers')
  t.is(error.retryable, true)
  t.alike(error.next, ['a2a-node start'])
})

test('every code has a next step that begins with a command, never with prose', (t) => {
  for (const code of codes) {
    const { next } = new NodeError(code, 'm')
    t.ok(next.length > 0, code)
    for (const step of next) t.ok(/^(a2a-node [a-z0-9-]+|df)( [^()]+)?$/.test(step), `${code}: ${step}`)
  }
})

test('an error that is given no next step has those of the table', (t) => {
  t.alike(new NodeError('NODE_NOT_RUNNING', 'm', { next: [] }).next, ['a2a-node start'])
  t.alike(NodeError.fromBody({ code: 'TASK_FAILED', message: 'm', next: [] }).next, ['a2a-node tasks'])
})

test('given next steps win over those of the table', (t) => {
  t.alike(new NodeError('NODE_NOT_RUNNING', 'm', { next: ['other'] }).next, ['other'])
})

test('a body never holds cause or stack', (t) => {
  const body = new NodeError('INTERNAL', 'it broke', { cause: new Error('secret') }).toBody()
  t.alike(Object.keys(body).sort(), ['code', 'message', 'next', 'retryable'])
  t.absent(JSON.stringify(body).includes('secret'))
})

test('any error survives a wire', async (t) => {
  const property = fc.property(
    fc.constantFrom(...codes),
    fc.string(),
    fc.option(fc.jsonValue()),
    fc.array(fc.string()),
    (code: ErrorCode, message, data, next) => {
      const error = new NodeError(code, message, { next, ...(data === null ? {} : { data }) })
      const wire: unknown = JSON.parse(JSON.stringify(error.toBody()))
      const back = NodeError.fromBody(wire as ReturnType<NodeError['toBody']>)
      return JSON.stringify(back.toBody()) === JSON.stringify(wire)
    }
  )
  await holds(t, property)
})

test('a code of another version becomes INTERNAL, also when it is the name of an object member', (t) => {
  for (const code of ['FROM_THE_FUTURE', 'toString', '__proto__', '']) {
    t.is(NodeError.fromBody({ code: code as ErrorCode, message: 'm' }).code, 'INTERNAL', code)
    t.is(isErrorCode(code), false)
  }
  t.is(isErrorCode(7), false)
})

test('any thrown value becomes a NodeError with it as cause', (t) => {
  const known = new NodeError('TIMEOUT', 'late')
  t.is(asNodeError(known), known)
  const cause = new TypeError('x is not a function')
  const error = asNodeError(cause)
  t.is(error.code, 'INTERNAL')
  t.is(error.cause, cause)
  t.is(messageOf('just text'), 'just text')
  t.is(messageOf(undefined), 'undefined')
})

test('a conflict that passes is retryable, unlike one that stays', (t) => {
  const error = passingConflict('the log changes')
  t.alike([error.code, error.message, error.retryable], ['CONFLICT', 'the log changes: try again', true])
  t.alike(error.next, ERROR_CODES.CONFLICT.next)
  t.is(new NodeError('CONFLICT', 'it was taken').retryable, false)
})

test('no error of this tree says that the call should be tried again, and that it is not retryable', (t) => {
  const files = fs.readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  let read = 0
  for (const file of files) {
    const [, ...made] = fs.readFileSync(path.join('src', file), 'utf8').split('new NodeError(')
    for (const rest of made) {
      const [call = ''] = rest.split(/\n {0,6}\}\n/)
      const code = /^\s*'([A-Z_]+)'/.exec(call)?.[1]
      const text = call.slice(0, 300)
      // After another action of a person the same call is another one.
      if (
        !isErrorCode(code) ||
        !/[:;,] (?:then )?try again/.test(text) ||
        /Start it once|Quit th(?:e client|at program)/.test(text)
      )
        continue
      read++
      t.ok(ERROR_CODES[code].retryable || text.includes('retryable: true'), `${file}: ${text}`)
    }
  }
  t.ok(read >= 3, `${read} such errors were read`)
})
