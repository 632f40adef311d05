import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { shellWord } from '../../kit/text.js'
import type { ServiceDirs } from './service-plan.js'
import { homeOfUnit, isOurUnit } from './units.js'

/** A service that this program wrote. */
export interface InstalledService {
  readonly file: string
  /** A service of the machine. */
  readonly isSystem: boolean
  /** Its home; null: the default one. */
  readonly home: string | null
}

/** The services that this program wrote into the directories, of any home. Unreadable files are left out. */
export async function installedServices(dirs: ServiceDirs): Promise<readonly InstalledService[]> {
  const found: InstalledService[] = []
  for (const scope of ['user', 'system'] as const) {
    const names = await readdir(dirs[scope]).catch(() => [])
    for (const name of names.filter((one) => /^a2a-node.*\.(service|plist)$/.test(one)).sort()) {
      const file = path.join(dirs[scope], name)
      const text = await readFile(file, 'utf8').catch(() => '')
      if (isOurUnit(text)) found.push({ file, isSystem: scope === 'system', home: homeOfUnit(text) })
    }
  }
  return found
}

/** The command that removes a service. */
export function removeStep({ home, isSystem }: InstalledService): string {
  const at = home === null ? '' : ` --home ${shellWord(home)}`
  return `${isSystem ? 'sudo ' : ''}a2a-node${at} service uninstall${isSystem ? ' --system' : ''}`
}
