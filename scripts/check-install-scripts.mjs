#!/usr/bin/env node
// Checks that installing runs no foreign code and gives the same versions everywhere: no package of the tree has an
// install script or a binding.gyp (npm would run node-gyp for it), every own dependency is an exact version that the
// lockfile has, and the lockfile ties nobody to a registry host.
// Prints one line for each fault. Exit code: 0 clean, 1 broken.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const HOOKS = ['preinstall', 'install', 'postinstall']

/**
 * Checks a package directory.
 * @param {string} dir where package.json, package-lock.json and node_modules are
 * @returns {string[]} one line for each fault
 */
export function check(dir = '.') {
  const own = readJson(path.join(dir, 'package.json'))
  const { packages } = readJson(path.join(dir, 'package-lock.json'))
  return [
    ...HOOKS.filter((hook) => own.scripts?.[hook] !== undefined).map((hook) => `package.json: has a script ${hook}`),
    ...pinFaults(own, packages),
    ...Object.entries(packages).flatMap(([place, entry]) => (place === '' ? [] : faultsOf(dir, place, entry)))
  ]
}

function pinFaults(own, packages) {
  const wanted = Object.entries({ ...own.dependencies, ...own.devDependencies, ...own.overrides })
  return wanted.flatMap(([name, wish]) => {
    // Another version of a package that is there under its own name: `npm:<name>@<version>`.
    const version = wish.replace(/^npm:.+@/, '')
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
      return [`package.json: ${name} is not pinned to one version (${version})`]
    const locked = packages[`node_modules/${name}`]?.version
    return locked === version
      ? []
      : [`package-lock.json: ${name} is ${locked ?? 'missing'}, package.json says ${version}`]
  })
}

function faultsOf(dir, place, entry) {
  const faults = []
  if (entry.hasInstallScript) faults.push(`${place}: has an install script`)
  if (entry.resolved !== undefined) faults.push(`${place}: is tied to ${entry.resolved}`)
  if (fs.existsSync(path.join(dir, place, 'binding.gyp'))) faults.push(`${place}: has a binding.gyp`)
  const scripts = readJson(path.join(dir, place, 'package.json'))?.scripts ?? {}
  for (const hook of HOOKS) if (scripts[hook] !== undefined) faults.push(`${place}: has a script ${hook}`)
  return faults
}

/** Null when there is no such file: packages of other platforms are in the lockfile only. */
function readJson(file) {
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : null
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const broken = check(process.argv[2])
  for (const line of broken) console.error(line)
  console.log(broken.length > 0 ? `${broken.length} faults` : 'install scripts: none')
  process.exitCode = broken.length > 0 ? 1 : 0
}
