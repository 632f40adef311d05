import { Console } from 'node:console'
import { Writable } from 'node:stream'

/** Hands over, from now on, each line that packages print; until then it goes to stderr. */
export type PackageOutput = (listener: (line: string) => void) => void

/**
 * Takes what packages print by `console` off stdout, which is the data of the command, for the rest of the process.
 * hypercore tells of a forked core by console.log and has no option for it.
 */
export function takePackageOutput(): PackageOutput {
  let tell = (line: string): void => void process.stderr.write(`${line}\n`)
  const sink = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      for (const line of text.split('\n')) if (line !== '') tell(line)
      done()
    }
  })
  globalThis.console = new Console({ stdout: sink, stderr: sink, colorMode: false })
  return (listener) => {
    tell = listener
  }
}
