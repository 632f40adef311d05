import test from 'brittle'
import { Emitter } from '../../src/kit/events.js'

test('listeners get every value in the order of subscription until they stop', (t) => {
  const heard: string[] = []
  const emitter = new Emitter<number>(() => t.fail('no listener threw'))
  const stop = emitter.on((value) => heard.push(`a${value}`))
  emitter.on((value) => heard.push(`b${value}`))
  emitter.emit(1)
  stop()
  stop()
  emitter.emit(2)
  t.alike(heard, ['a1', 'b1', 'b2'])
  t.is(emitter.size, 1)
})

test('a listener that throws is reported to onError and does not stop the others', (t) => {
  const errors: unknown[] = []
  const emitter = new Emitter<null>((error) => errors.push(error))
  const problem = new Error('listener')
  let reached = false
  emitter.on(() => {
    throw problem
  })
  emitter.on(() => {
    reached = true
  })
  emitter.emit(null)
  t.alike(errors, [problem])
  t.ok(reached)
})

test('a subscription or removal inside a listener changes the next emit, not this one', (t) => {
  const heard: string[] = []
  const emitter = new Emitter<null>(() => {})
  const stopLate = (): void => stop()
  emitter.on(() => {
    heard.push('first')
    stopLate()
    if (heard.length === 1) emitter.on(() => heard.push('added'))
  })
  const stop = emitter.on(() => heard.push('second'))
  emitter.emit(null)
  t.alike(heard, ['first', 'second'])
  emitter.emit(null)
  t.alike(heard, ['first', 'second', 'first', 'added'])
})
