// Faults in backup and restore, and in what is done about forked cores; see list.mjs.

const KILLED =
  'the files of an interrupted restore go before the next one begins, files that a person added since do not'
const FORGED = 'a backup that was cut, changed or added to anywhere is refused'
const FORKED =
  'a member that signed two blocks at one position is found and reported, no block of it is accepted, and all others continue'
const EQUAL =
  'two equally long versions are found as well, and a node that took the other one reaches the view that the owner signed'
const LONGER = 'a node with the longer of two versions of a stream finds the fork at a node that knows both'
const STILL =
  'a log that stands still behind what its owner signed, or differs from it, takes the signed view; one that goes on does not'

const ONE = 'of many nodes that start at once in one home exactly one gets it, after any earlier holder'

const ONE_DAMAGED = 'a document of which one file is damaged, cut or gone is read of the other one'

/** @type {readonly import('./list.mjs').Mutant[]} */
export const CARE_MUTANTS = [
  {
    name: 'the lock of a home locks nothing',
    file: 'src/adapters/storage/home/process-lock.ts',
    find: 'if (!extensions.tryLock(fd)) return null',
    put: 'if (fd < 0) return null',
    test: 'scripts/storm/starters.prove',
    title: ONE
  },
  {
    name: 'each process locks a file of its own for a home',
    file: 'src/compose/open-home.ts',
    find: "return await takeProcessLock(path.join(run, 'node'), {",
    put: 'return await takeProcessLock(path.join(run, `node-${process.pid}`), {',
    test: 'scripts/storm/starters.prove',
    title: ONE
  },
  {
    name: 'a lock file that was removed meanwhile counts as the lock',
    file: 'src/adapters/storage/home/process-lock.ts',
    find: 'isOurs = await isAt(fd, file)',
    put: 'isOurs = fd > 0',
    test: 'adapters/storage/home/process-lock',
    title: 'a lock file that its holder removed between opening and locking is not taken for the lock'
  },
  {
    name: 'who releases a lock removes the files of the next holder',
    file: 'src/adapters/storage/home/process-lock.ts',
    find: 'if (!(await isAt(fd, lockFile))) return',
    put: 'if (fd < 0) return',
    test: 'adapters/storage/home/process-lock',
    title: 'a holder whose lock file was taken away by force removes nothing of the next holder'
  },
  {
    name: 'a start that fails removes what another start made in its directories',
    file: 'src/adapters/storage/home/data-dir.ts',
    find: 'await fs.rmdir(dir)',
    put: 'await fs.rm(dir, { recursive: true })',
    test: 'adapters/storage/home/data-dir',
    title: 'files that another start put into a directory meanwhile stay when this one cannot make all of them'
  },
  {
    name: 'doctor takes the pid file for a node that runs',
    file: 'src/maintenance/doctor-stores.ts',
    find: 'await holdHome(home, unwind)\n    return {',
    put: "if ((await fs.readFile(`${home.run}/node.pid`, 'utf8').catch(() => '')) !== '') return { by: 'another process', pid: null }\n    return {",
    test: 'maintenance/doctor-stores',
    title: 'a home whose pid file names a living process is free, as long as no process has its lock'
  },
  {
    name: 'the marks of the mesh log are not compared',
    file: 'src/adapters/mesh/log/log-marks.ts',
    find: '(lengths.get(core) ?? 0) < marked',
    put: '(lengths.get(core) ?? 0) < marked - marked',
    test: 'maintenance/doctor-log',
    title: 'a member that writes no log, and whose store lost a part of it, says so until others have given it'
  },
  {
    name: 'the copy of a small file is not read',
    file: 'src/adapters/storage/home/node-store.ts',
    find: 'const whole = found.find(({ document }) => document !== null)?.document',
    put: 'const whole = found.slice(0, 1).find(({ document }) => document !== null)?.document',
    test: 'adapters/storage/home/node-store',
    title: ONE_DAMAGED
  },
  {
    name: 'a small file has no copy',
    file: 'src/adapters/storage/home/node-store.ts',
    find: 'await putInPlace(copy, text).catch(() => fs.rm(copy, { force: true }))',
    put: 'void copy',
    test: 'adapters/storage/home/node-store',
    title: ONE_DAMAGED
  },
  {
    name: 'a copy that could not be replaced stays',
    file: 'src/adapters/storage/home/node-store.ts',
    find: 'await putInPlace(copy, text).catch(() => fs.rm(copy, { force: true }))',
    put: 'await putInPlace(copy, text).catch(() => undefined)',
    test: 'adapters/storage/home/node-store',
    title: 'a copy that the disk refuses is gone'
  },
  {
    name: 'an older copy of a small file stays',
    file: 'src/adapters/storage/home/node-store.ts',
    find: 'document === null || encode(document.value) !== text)',
    put: 'document === null)',
    test: 'adapters/storage/home/node-store',
    title: 'an older copy never replaces a written file, and does not bring back a removed one'
  },
  {
    name: 'a damaged part of a backup is restored',
    file: 'src/adapters/storage/home/backup-file.ts',
    find: 'if (hashOf(bytes) !== head.sha256)',
    put: 'if (hashOf(bytes) === "")',
    test: 'adapters/storage/home/backup-file',
    title: FORGED
  },
  {
    name: 'a backup may have lost parts',
    file: 'src/adapters/storage/home/backup-file.ts',
    find: 'if (line !== `${JSON.stringify({ end: true, ...expected })}\\n`)',
    put: 'if (line === `${JSON.stringify({ end: false, ...expected })}`)',
    test: 'adapters/storage/home/backup-file',
    title: FORGED
  },
  {
    name: 'something may stand behind the end of a backup',
    file: 'src/adapters/storage/home/backup-file.ts',
    find: 'if (size !== this.#at)',
    put: 'if (size < this.#at)',
    test: 'adapters/storage/home/backup-file',
    title: FORGED
  },
  {
    name: 'a backup is made that is too large to be restored',
    file: 'src/adapters/storage/home/backup-file.ts',
    find: 'if (bytes.byteLength > MAX_PART) throw',
    put: 'if (bytes.byteLength > 2 * MAX_PART) throw',
    test: 'adapters/storage/home/backup-file',
    title: 'a part or a name beyond the limits is not written, and not read: no backup is made that cannot be restored'
  },
  {
    name: 'a part of a backup may be restored outside of the home',
    file: 'src/adapters/storage/home/backup-file.ts',
    find: "one !== '.' && one !== '..'",
    put: "one !== '.'",
    test: 'adapters/storage/home/backup-file',
    title: 'a name that leads out of a home is neither written nor read'
  },
  {
    name: 'what a restore that was cut off left stays in the way',
    file: 'src/maintenance/restore-place.ts',
    find: 'if (lock.isAfterKill) await clear(staged, configDir(home))',
    put: 'if (lock.isAfterKill) await isThere(configDir(home))',
    test: 'maintenance/restore-place',
    title: KILLED
  },
  {
    name: 'settings of a person go with those of a restore that was cut off',
    file: 'src/maintenance/restore-place.ts',
    find: 'if (await isCopy(path.join(from, name), target)) await',
    put: 'if (isCopy.length > 0) await',
    test: 'maintenance/restore-place',
    title: KILLED
  },
  {
    name: 'two restores to one home work at once',
    file: 'src/maintenance/restore-place.ts',
    find: '.catch((error: unknown) => Promise.reject(atWork(error, home)))',
    put: '.catch((error: unknown) => void atWork(error, home))',
    test: 'maintenance/restore-place',
    title: 'of two restores to one home the second one is refused; so is one where a directory of nobody is in the way'
  },
  {
    name: 'what had begun before a backup begins again after the restore',
    file: 'src/domain/reliable/restored.ts',
    find: "record.status !== 'pending' ||",
    put: "record.status === 'pending' ||",
    test: 'domain/reliable/restored',
    title: 'a request of another that had not begun ends as unknown in a restored ledger, unless it may be repeated'
  },
  {
    name: 'a forked core puts nobody in quarantine',
    file: 'src/adapters/mesh/cores/writer-cores.ts',
    find: "core.on('conflict', () => this.#onForked(key))",
    put: "core.on('close', () => this.#forked.delete(key))",
    test: 'adapters/mesh/log/quarantine.prove',
    title: FORKED
  },
  {
    name: 'a member in quarantine is no problem',
    file: 'src/adapters/mesh/log/quarantine.ts',
    find: 'member.revoked !== null || !this.has(nodeId)',
    put: 'member.revoked !== null || this.has(nodeId)',
    test: 'adapters/mesh/log/quarantine.prove',
    title: FORKED
  },
  {
    name: 'two tales that are equally long are not compared',
    file: 'src/adapters/mesh/cores/writer-cores.ts',
    find: 'peer.remoteLength <= core.length',
    put: 'peer.remoteLength < core.length',
    test: 'adapters/mesh/log/quarantine.prove',
    title: EQUAL
  },
  {
    name: 'a longer tale is not compared with a shorter one',
    file: 'src/adapters/mesh/cores/writer-cores.ts',
    find: 'peer.remoteLength <= core.length',
    put: 'peer.remoteLength === core.length',
    test: 'adapters/mesh/cores/writer-cores',
    title: LONGER
  },
  {
    name: 'a view that differs from the signed one stays',
    file: 'src/adapters/mesh/log/signed-view.ts',
    find: 'return !isSame',
    put: 'return isSame && length < 0',
    test: 'adapters/mesh/log/quarantine.prove',
    title: EQUAL
  },
  {
    name: 'a log that stands still stays so',
    file: 'src/adapters/mesh/log/catch-up.ts',
    find: '(own < signed || ',
    put: '(own > signed || ',
    test: 'adapters/mesh/log/catch-up',
    title: STILL
  },
  {
    name: 'a log that goes on by itself is jumped over',
    file: 'src/adapters/mesh/log/catch-up.ts',
    find: 'own === before && ',
    put: 'own >= before && ',
    test: 'adapters/mesh/log/catch-up',
    title: STILL
  }
]
