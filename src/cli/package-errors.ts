import { inspect } from 'node:util'
import { isMistake, type PackageFault } from '../kit/package-fault.js'
import { terminalText } from './terminal/terminal.js'

/** Receiver of uncaught errors. */
export interface UncaughtErrors {
  /** Passes on each later uncaught error of a package. Before this call such an error ends the process. */
  readonly packageErrors: (listener: (fault: PackageFault) => void) => void
  /**
   * Hands over, from now on, the error by which the process is about to end. The listener must not wait for anything.
   */
  readonly ownErrors: (listener: (error: unknown) => void) => void
}

/** The place of a frame of a stack in a package: `.../node_modules/<name>/...`, the innermost one. */
const IN_PACKAGE = /.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)[/\\]/
/** This package, which is below `node_modules` itself where it is installed. */
const OWN = 'a2a-node'
/** Frames that say nothing of whose code it is. */
const BUILT_IN = /\((?:node:|native|<anonymous>)|^\s*at (?:async )?node:/

/**
 * Keeps the process alive after uncaught errors of packages. Network packages rethrow supposed programming errors in a
 * task of their own (`safety-catch`), and bytes of a peer can cause that. Any other uncaught error still ends the
 * process.
 */
export function takeUncaughtErrors(): UncaughtErrors {
  let tell: ((fault: PackageFault) => void) | null = null
  let tellOwn = (_error: unknown): void => {}
  process.on('uncaughtException', (error: unknown) => {
    const name = faultyPackage(error)
    if (name !== null && tell !== null) return tell({ package: name, error: error as Error })
    tellOwn(error)
    process.stderr.write(`${terminalText(inspect(error))}\n`)
    process.exit(1)
  })
  return { packageErrors: (listener) => void (tell = listener), ownErrors: (listener) => void (tellOwn = listener) }
}

/**
 * The package whose own code alone failed. Null for code of this program, and for errors that are no programming errors
 * (a full disk).
 */
export function faultyPackage(error: unknown): string | null {
  if (!isMistake(error)) return null
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s*at /.test(line) && !BUILT_IN.test(line))
  const packages = frames.map((frame) => IN_PACKAGE.exec(frame)?.[1] ?? OWN)
  const [first] = packages
  return first !== undefined && !packages.includes(OWN) ? first : null
}
