import { createMemoryLedger } from '../../../../src/adapters/storage/ledger/memory-ledger.js'
import { ledgerContract } from '../../../contracts/ledger.js'

ledgerContract('memory ledger', () => Promise.resolve(createMemoryLedger()))
