import { createMemoryLedger } from '../../../src/adapters/storage/memory-ledger.js'
import { ledgerContract } from '../../contracts/ledger.js'

ledgerContract('memory ledger', () => Promise.resolve(createMemoryLedger()))
