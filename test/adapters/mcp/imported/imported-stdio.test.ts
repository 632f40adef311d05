import test from 'brittle'
import type { Assert } from 'brittle'
import { ManualClock } from '../../../support/manual-clock.js'
import { StdioTransport } from '../../../../src/adapters/mcp/imported/imported-stdio.js'
import type { ProgramStarter } from '../../../../src/ports/programs.js'

const PROGRAM = { command: ['server'] as [string], env: {}, cwd: '/' }

test('a program that is gone before it has read says how it ended, not that its pipe is broken', async (t: Assert) => {
  let tell = (_how: string): void => {}
  const exited = new Promise<string>((resolve) => {
    tell = resolve
  })
  const ends: string[] = []
  const programs: ProgramStarter = {
    start: async () => ({
      write: () => Promise.reject(new Error('write EPIPE')),
      exited,
      // The pipe is broken before the node hears of the end.
      end: async () => {
        ends.push('end')
        tell('ended with exit code 4: no licence')
      }
    })
  }
  const transport = new StdioTransport({ program: PROGRAM, programs, clock: new ManualClock(), maxOutputBytes: 1000 })
  let closes = 0
  transport.onclose = () => closes++
  await transport.start()
  const error = await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' }).catch((fault: Error) => fault)
  t.is(error instanceof Error && error.message, 'its program ended with exit code 4: no licence')
  t.is(transport.reason, 'its program ended with exit code 4: no licence')
  t.alike([ends, closes], [['end'], 1])
})
