// Faults in what is kept on record: the audit log and log lines; see list.mjs.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const RECORD_MUTANTS = [
  {
    name: 'the chain of the audit log is not checked',
    file: 'src/adapters/storage/audit-verify.ts',
    find: 'line.seq === this.#last.seq + 1 && line.prev === this.#last.hash',
    put: 'line.seq === this.#last.seq + 1',
    test: 'adapters/storage/audit-verify',
    title: 'lines in another order, or twice, are found'
  },
  {
    name: 'a line of the audit log may be changed without its hash telling',
    file: 'src/adapters/storage/audit-line.ts',
    find: 'return hashOf(body) === hash ? value : null',
    put: "return hashOf(body) === hash || hash !== '' ? value : null",
    test: 'adapters/storage/audit-verify',
    title: 'any change of a character in any line is found'
  },
  {
    name: 'lines missing at the end of the audit log are not missed',
    file: 'src/adapters/storage/audit-verify.ts',
    find: 'return this.isPastHead && (this.#sawFirst || this.#last === null)',
    put: 'return this.#sawFirst || this.#last === null',
    test: 'adapters/storage/audit-verify',
    title: 'removed lines are found, wherever they stood'
  },
  {
    name: 'only the first broken chain of the audit log is named',
    file: 'src/adapters/storage/audit-verify.ts',
    find: 'if (check.broken !== null) broken.push(',
    put: 'if (check.broken !== null && broken.length === 0) broken.push(',
    test: 'adapters/storage/audit-verify',
    title: 'every broken chain is named, with the first line that does not hold'
  },
  {
    name: 'an audit log that is gone altogether is taken for none',
    file: 'src/adapters/storage/audit-log.ts',
    find: 'new Set([...noted, ...heads.flatMap(',
    put: 'new Set([...heads.flatMap(',
    test: 'adapters/storage/audit-verify',
    title: 'a log that is gone altogether is missed by the note outside of it'
  },
  {
    name: 'refusals share the chain of membership changes',
    file: 'src/adapters/storage/audit-chains.ts',
    find: "{ name: 'changes', kinds: ['membership'],",
    put: "{ name: 'changes', kinds: ['membership', 'refusal'],",
    test: 'adapters/storage/audit-log',
    title: 'no flood of refusals or exchanges pushes a revocation or an approval out'
  },
  {
    name: 'secrets below the first level are logged',
    file: 'src/adapters/telemetry/redact.ts',
    find: 'this.#hidden.has(plainKey(key)) ? REDACTED',
    put: 'depth === 0 && this.#hidden.has(plainKey(key)) ? REDACTED',
    test: 'adapters/telemetry/redact',
    title: 'values of secret keys are redacted'
  },
  {
    name: 'keys of secrets are compared with their case',
    file: 'src/adapters/telemetry/redact.ts',
    find: 'return key.toLowerCase().replace',
    put: 'return key.replace',
    test: 'adapters/telemetry/redact',
    title: 'values of secret keys are redacted'
  },
  {
    name: 'a line of folded events names one sender for all',
    file: 'src/adapters/storage/audit-repeats.ts',
    find: 'bits |= 32',
    put: 'bits |= 0',
    test: 'adapters/storage/audit-repeats',
    title: 'a line of folded events has what all of them share, and names whatever they differ in'
  }
]
