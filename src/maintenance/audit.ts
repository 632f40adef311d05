/**
 * The audit log of a home, read and checked without a node: what `a2a-node audit` is made of. Loads no peer-to-peer
 * package.
 */
export { readAudit, type ReadLine } from '../adapters/storage/audit/audit-read.js'
export { type BrokenChain, brokenText, verifyAudit } from '../adapters/storage/audit/audit-verify.js'
