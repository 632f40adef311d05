import { createMemoryLedger } from './memory-ledger.js'
import { ledgerContract } from '../contracts/ledger.js'

ledgerContract('memory ledger', () => Promise.resolve(createMemoryLedger()))
