import test from 'brittle'
import { Output } from '../../../src/cli/terminal/output.js'
import type { Sink } from '../../../src/cli/terminal/terminal.js'
import { SwarmScreen } from '../../../src/cli/swarm/view.js'
import { swarmEvents } from '../samples.js'

/** A place to write that tells when something fits. */
class Terminal implements Sink {
  text = ''
  readonly columns = 80
  readonly rows = 24
  #waiting: { readonly part: string; readonly resolve: () => void }[] = []

  constructor(readonly isTTY: boolean) {}

  write(part: string): boolean {
    this.text += part
    for (const one of this.#waiting) if (this.text.includes(one.part)) one.resolve()
    return true
  }

  until(part: string): Promise<void> {
    return this.text.includes(part)
      ? Promise.resolve()
      : new Promise((resolve) => this.#waiting.push({ part, resolve }))
  }
}

function viewOn(err: Terminal): SwarmScreen {
  const output = new Output({ out: new Terminal(false), err, json: false, color: 'never', env: {} })
  return new SwarmScreen(output, { total: 2, launched: null })
}

test('on a terminal a swarm is drawn in place as a tree, elsewhere its events are lines', async (t) => {
  const terminal = new Terminal(true)
  const view = viewOn(terminal)
  t.teardown(() => view.close())
  for (const event of swarmEvents().slice(0, 2)) view.take(event)
  await terminal.until('0 of 2 done, 1 running on 1 agent')
  t.ok(/\n {4}a\.txt {2}text@laptop {2}\d/.test(terminal.text), terminal.text)
  t.absent(terminal.text.includes('lease'), 'no line an event')
  const plain = new Terminal(false)
  const lines = viewOn(plain)
  for (const event of swarmEvents().slice(0, 2)) lines.take(event)
  t.ok(plain.text.includes('begin   a.txt  text@laptop\n'), plain.text)
  t.absent(plain.text.includes('\u001b'))
})
