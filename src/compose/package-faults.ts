import type { PackageFault } from '../kit/package-fault.js'
import { shown } from '../kit/text.js'
import type { Problem } from '../ports/node-api.js'

/** Most packages with counted errors. */
const MAX_PACKAGES = 16

/** Errors of packages that the node survived, for `status`: the count and last error of each package. */
export class PackageFaults {
  #tell: (name: string, reason: string) => void = () => {}
  readonly #faults = new Map<string, { readonly count: number; readonly message: string }>()

  /** Sets the listener for each error. */
  onFault(tell: (name: string, reason: string) => void): void {
    this.#tell = tell
  }

  /** Counts an error. */
  add({ package: name, error }: PackageFault): void {
    this.#tell(name, shown(error.message))
    const before = this.#faults.get(name)
    if (before === undefined && this.#faults.size >= MAX_PACKAGES) return
    this.#faults.set(name, { count: (before?.count ?? 0) + 1, message: shown(error.message) })
  }

  /** One problem for each package. */
  problems(): readonly Problem[] {
    return [...this.#faults].map(([name, { count, message }]) => ({
      code: 'INTERNAL',
      message: `${name} failed ${count === 1 ? 'once' : `${count} times`}, probably at what a peer sent: ${message}`,
      next: 'a2a-node peers'
    }))
  }
}
