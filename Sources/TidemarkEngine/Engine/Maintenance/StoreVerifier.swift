/// Reads every file of a store, without a lock, and reports what is wrong. Others may write the
/// store meanwhile, so what looks wrong is read again, with a newer MANIFEST if there is one,
/// before it counts. At the end damage to acknowledged data is recorded in MANIFEST, under the
/// store's lock, so that no later opening writes over it; that is the only write.
package struct StoreVerifier {
  let path: String
  let environment: EngineEnvironment
  private let recordsDamage: Bool
  let keys: KeyRing
  private let contexts = ZstdContexts()
  var report = VerifyReport()

  /// Verifies a store.
  /// - Parameters:
  ///   - recordsDamage: whether damage to the log is recorded, unless the store's lock is taken.
  ///   - encryption: the keys of an encrypted store; without them only checksums are checked.
  /// - Throws: `storeMissing`, `notAStore`, `formatTooNew`, errors of the system; never damage.
  package static func verify(
    _ path: String, environment: EngineEnvironment = EngineEnvironment(),
    recordsDamage: Bool = true, encryption: Encryption? = nil
  ) throws(TidemarkError) -> VerifyReport {
    var verifier = StoreVerifier(
      path: path, environment: environment, recordsDamage: recordsDamage, keys: KeyRing(encryption))
    return try verifier.run()
  }

  var fileSystem: any FileSystem { environment.fileSystem }

  private mutating func run() throws(TidemarkError) -> VerifyReport {
    do throws(TidemarkError) { try StoreDirectory.check(path, fileSystem, creates: false) } catch {
      // `damaged` means that both copies of MANIFEST are missing: here that becomes a finding.
      guard error.code == .damaged else { throw error }
    }
    let first = try readManifest()
    report.findings = first.findings
    guard let manifest = first.manifest else { return report }
    if manifest.isEncrypted, keys.isEmpty {
      report.isOpaque = true
    } else {
      try keys.check(manifest, writes: false)
    }
    let (checked, results) = try checkSegments(manifest)
    for result in results {
      report.findings.append(contentsOf: result.findings)
      report.entries += result.entries
      report.bytes += result.bytes
      report.lastSequence = max(report.lastSequence, result.lastSequence)
    }
    report.segments = results.count
    // MANIFEST's count goes beyond the log where the last entries were compacted away.
    report.lastSequence = max(report.lastSequence, checked.lastSequence)
    try checkRuns(checked)
    try checkUnlisted(checked)
    try checkAttachments(results.reduce(into: []) { $0.formUnion($1.attachments) }, checked)
    try finish(checked)
    return report
  }

  /// Reads both copies of MANIFEST, up to three times: a running writer may be updating one.
  private func readManifest() throws(TidemarkError) -> ManifestVerifier {
    var found = try ManifestVerifier(path, fileSystem)
    for _ in 0..<2 where !found.findings.isEmpty { found = try ManifestVerifier(path, fileSystem) }
    guard found.manifest == nil else { return found }
    // A creation that was cut off has left no log: that is no store, rather than a damaged one.
    if found.isMissing ? try !hasLog() : try StoreDirectory.isHalfCreated(path, fileSystem) {
      throw StoreDirectory.cutOff(path)
    }
    return found
  }

  private func hasLog() throws(TidemarkError) -> Bool {
    do {
      return try !fileSystem.names(in: path + "/" + StoreLayout.logDirectory).isEmpty
    } catch { throw TidemarkError(error, while: "looking into the store") }
  }

  // MARK: Segments

  /// Checks all segments that MANIFEST lists, again while a writer changes what looked wrong.
  /// - Returns: also the MANIFEST that lists them, which the other checks use as well.
  private func checkSegments(
    _ manifest: Manifest
  ) throws(TidemarkError) -> (Manifest, [SegmentVerifier]) {
    let boot: [UInt8]
    do { boot = try environment.bootIdentifier() } catch {
      throw TidemarkError(error, while: "verifying the log")
    }
    var manifest = manifest
    var results: [UInt64: SegmentVerifier] = [:]
    for attempt in 0..<Limits.verifyAttempts {
      for row in manifest.segments where results[row.id]?.row != row {
        results[row.id] = try check(row, manifest, boot: boot)
      }
      let isClean = manifest.segments.allSatisfy { results[$0.id]?.findings.isEmpty ?? true }
      if isClean || attempt == Limits.verifyAttempts - 1 { break }
      // Findings count if MANIFEST lists the same segments as before. Else a writer has sealed or
      // replaced one while it was read, and the rows that changed are checked again.
      guard let newer = try readManifest().manifest, newer.segments != manifest.segments else {
        break
      }
      manifest = newer
    }
    return (manifest, manifest.segments.compactMap { results[$0.id] })
  }

  /// Checks one segment, the one that is appended to again while it shows faults.
  private func check(
    _ row: Manifest.Segment, _ manifest: Manifest, boot: [UInt8]
  ) throws(TidemarkError) -> SegmentVerifier {
    let fresh = SegmentVerifier(
      row: row, manifest: manifest, path: path, fileSystem: fileSystem, contexts: contexts,
      keys: keys, sameBoot: manifest.bootID == boot)
    var result = fresh
    try result.run()
    guard row.state == .active else { return result }
    for _ in 1..<Limits.verifyAttempts where !result.findings.isEmpty {
      // A frame may have been half written: only a fault at the same offset twice is damage.
      let places = Set(result.findings.map(\.offset))
      result = fresh
      try result.run()
      let findings = result.findings.filter { places.contains($0.offset) }
      guard findings.isEmpty else {
        result.findings = findings
        break
      }
    }
    return result
  }

  // MARK: Everything else

  /// Checks the sorted runs of the index, oldest first, and then all against the log.
  private mutating func checkRuns(_ manifest: Manifest) throws(TidemarkError) {
    let hasDamage = report.findings.contains { $0.isDamageToAcknowledged }
    var runs: [SortedRun] = []
    // The last sequence of the next older run, after which a run begins.
    var beneath: UInt64 = 0
    for row in manifest.runs {
      let verifier = RunVerifier(
        row: row, manifest: manifest, path: path, fileSystem: fileSystem, contexts: contexts,
        keys: keys)
      let (found, run) = try verifier.findings(beneath: beneath)
      report.findings.append(contentsOf: found)
      report.bytes += row.length
      report.runs += 1
      beneath = row.sequence
      if let run { runs.insert(run, at: 0) }
      // At the newest run, if all are intact, the whole index is compared; not with a damaged log.
      guard !hasDamage, row.id == manifest.runs.last?.id,
        runs.count == manifest.runs.count
      else { continue }
      report.findings.append(contentsOf: try verifier.findings(comparing: RunList(runs)))
    }
  }

  /// Looks at files that MANIFEST does not list. One that an interrupted compaction or checkpoint
  /// left is no finding. One with entries after the end of the log is: MANIFEST has lost it.
  private mutating func checkUnlisted(_ manifest: Manifest) throws(TidemarkError) {
    let listed = manifest.fileNames
    do throws(FileSystemError) {
      for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
        for name in try fileSystem.names(in: path + "/" + folder) where !listed.contains(name) {
          let file = folder + "/" + name
          do {
            let first = folder == StoreLayout.logDirectory ? try sequence(in: file, manifest) : nil
            guard let first else {
              report.leftovers.append(file)
              continue
            }
            report.findings.append(
              VerifyFinding(
                file: file, offset: 0, sequences: first...first,
                message: "a file that MANIFEST does not list holds entries beyond the end of the "
                  + "log",
                remedy: VerifyRemedy.repair(path), isDamageToAcknowledged: true))
          } catch {
            guard error.isUnreadable else { throw error }
            report.findings.append(
              VerifyFinding(
                file: file, offset: 0,
                message: "the disk cannot read a file that MANIFEST does not list, which may hold "
                  + "entries beyond the end of the log",
                remedy: VerifyRemedy.repair(path), isDamageToAcknowledged: false))
          }
        }
      }
    } catch { throw TidemarkError(error, while: "looking into the store") }
  }

  /// The first sequence in a log file, if that holds entries of this store after the log's end;
  /// nil also when the file has gone, since a running writer removes such files.
  private func sequence(in name: String, _ manifest: Manifest) throws(FileSystemError) -> UInt64? {
    let last = report.lastSequence
    do {
      return try fileSystem.firstSequence(
        in: path + "/" + name, behind: last, from: last + 1, of: manifest, contexts: contexts)
    } catch {
      guard error.number != ErrorNumber.noEntry else { return nil }
      throw error
    }
  }

  /// Lists sequences that were given up before, and records new damage if that is wanted.
  private mutating func finish(_ manifest: Manifest) throws(TidemarkError) {
    report.holes = manifest.damage.filter { $0.state == .accepted }
      .map { $0.firstSequence...max($0.firstSequence, $0.lastSequence) }
    let damage = report.findings.filter { $0.isDamageToAcknowledged }
    if damage.isEmpty {
      reportSettledDamage(manifest)
    } else if recordsDamage {
      report.isRecorded = try record(damage)
    } else {
      report.isRecorded = manifest.unrecorded(damage).isEmpty
    }
  }

  /// Reports damage that was not found this time, but is on record: opening for writing refuses.
  private mutating func reportSettledDamage(_ manifest: Manifest) {
    for record in manifest.damage where record.state == .found {
      report.isRecorded = true
      let row = manifest.segments.first { $0.id == record.segmentID }
      let name = row?.fileName ?? ""
      report.findings.append(
        VerifyFinding(
          file: StoreLayout.logDirectory + "/" + name, offset: record.offset, length: record.length,
          sequences: record.firstSequence...max(record.firstSequence, record.lastSequence),
          message: "damage is on record that this look did not find: "
            + String(decoding: record.reason, as: UTF8.self),
          remedy: VerifyRemedy.repair(path), isDamageToAcknowledged: true,
          segmentID: record.segmentID))
    }
  }
}
