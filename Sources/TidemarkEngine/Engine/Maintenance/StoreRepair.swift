/// Brings everything that can still be read of a damaged store, the source, into a new one.
///
/// Sequences, commit times, labels, attributes, deletes, touches and links to earlier versions
/// stay as they were, so that history, views and cursors go on; what is lost is put on record
/// as accepted, so that a read which needs it fails instead of answering wrongly.
package struct StoreRepair {
  private let path: String
  private let environment: EngineEnvironment
  private let contexts = ZstdContexts()
  private let keys: KeyRing
  private var report = RepairReport()
  private var manifest: Manifest?
  private var sources: [RepairSource] = []

  /// Repairs a store.
  /// - Parameters:
  ///   - path: the damaged store, which is only read.
  ///   - target: the new store: nothing, or an empty directory.
  ///   - encryption: the keys of an encrypted store; the new one is encrypted with them, too.
  /// - Throws: `storeMissing` and `notAStore`, `storeExists`, `locked` when somebody writes to
  ///   the source, `formatTooNew`, and what the system refuses.
  package static func repair(
    from path: String, into target: String, environment: EngineEnvironment = EngineEnvironment(),
    encryption: Encryption? = nil
  ) throws(TidemarkError) -> RepairReport {
    var repair = StoreRepair(path: path, environment: environment, keys: KeyRing(encryption))
    let lock = try repair.lockSource()
    defer { lock?.release() }
    try repair.readSource()
    return try repair.write(to: target)
  }

  /// Locks the source against writers; where the disk allows no lock, it is read without.
  private func lockSource() throws(TidemarkError) -> (any FileLock)? {
    do throws(TidemarkError) {
      try StoreDirectory.check(path, environment.fileSystem, creates: false)
    } catch { guard error.code == .damaged else { throw error } }
    do throws(TidemarkError) { return try StoreDirectory.lock(path, environment) } catch {
      if error.code == .locked { throw error }
      return nil
    }
  }

  /// Finds all segments, listed in MANIFEST or not, and what is still good in each.
  private mutating func readSource() throws(TidemarkError) {
    let fileSystem = environment.fileSystem
    manifest = try ManifestVerifier(path, fileSystem).manifest
    if manifest == nil, try StoreDirectory.isHalfCreated(path, fileSystem) {
      throw StoreDirectory.cutOff(path)
    }
    if manifest == nil { report.notes.append("both copies of MANIFEST are lost") }
    if let manifest { try keys.check(manifest, writes: true) }
    let rows = manifest?.segments ?? []
    let listed = Set(rows.map(\.fileName))
    for row in rows {
      let name = StoreLayout.logDirectory + "/" + row.fileName
      let (source, fault) = try source(name, row)
      sources.append(
        source
          ?? RepairSource(
            missing: row, reason: fault ?? "the file is missing", storePath: path,
            contexts: contexts))
    }
    for file in try segmentFiles() where !listed.contains(file) {
      let name = StoreLayout.logDirectory + "/" + file
      switch try source(name, nil) {
      case (let source?, _): sources.append(source)
      case (nil, let fault?):
        report.losses.append(RepairLoss(file: name, offset: 0, reason: fault))
      case (nil, nil): report.notes.append("\(name): nothing tells what this file is; left out")
      }
    }
    dropStrangers()
    for index in sources.indices {
      try sources[index].takeStock(fileSystem)
      report.notes.append(contentsOf: sources[index].notes)
    }
    report.segmentsRead = sources.count
  }

  /// Opens a file of the log.
  /// - Returns: no source when it is missing, or no segment, or (with a fault) cannot be read.
  private func source(
    _ name: String, _ row: Manifest.Segment?
  ) throws(TidemarkError) -> (RepairSource?, fault: String?) {
    do throws(TidemarkError) {
      let source = try RepairSource(
        name, row: row, storePath: path, fileSystem: environment.fileSystem, contexts: contexts,
        keys: keys)
      return (source, nil)
    } catch {
      guard error.isDamage else { throw error }
      return (nil, "the disk cannot read the file")
    }
  }

  private func segmentFiles() throws(TidemarkError) -> [String] {
    do {
      return try environment.fileSystem.names(in: path + "/" + StoreLayout.logDirectory)
        .filter { $0.hasSuffix(".seg") }
    } catch { throw TidemarkError(error, while: "looking into the store") }
  }

  /// Leaves out unlisted files whose header names another store.
  private mutating func dropStrangers() {
    guard let own = manifest?.storeID ?? sources.lazy.compactMap(\.storeID).first else { return }
    sources.removeAll { source in
      guard let id = source.storeID, id != own, !source.isListed else { return false }
      report.notes.append("\(source.name): a file of another store; left out")
      return true
    }
  }

  private mutating func write(to path: String) throws(TidemarkError) -> RepairReport {
    let plan = RepairPlan(sources, hasManifest: manifest != nil)
    var result = try newManifest(plan)
    reportLosses(plan, last: result.lastSequence)
    let target = try StoreTarget(creating: path, environment: environment)
    do throws(TidemarkError) {
      var writer = RepairWriter(
        sources: sources, plan: plan, lost: report.lost, target: target, storeID: result.storeID,
        environment: environment, contexts: contexts, keys: keys, keyID: result.keyID)
      try writer.run()
      report.lost = writer.lost
      report.losses.append(contentsOf: writer.losses)
      result.segments = writer.rows
      result.nextSegmentID = max(result.nextSegmentID, UInt64(writer.rows.count) + 1)
      result.latestCommitTime = max(result.latestCommitTime, writer.latestCommitTime)
      if manifest == nil { inferHistory(&result, plan, danglingAt: writer.lastDangling) }
      recordHoles(in: &result)
      try copyAttachments(to: path, result.keyID)
      try target.finish(result)
      report.entries = writer.entries
      report.segmentsWritten = writer.rows.count
    } catch {
      target.discard()
      throw error
    }
    return report
  }

  /// Copies the attachments that are whole; in the copy all have the key for new files.
  private mutating func copyAttachments(
    to target: String, _ key: Encryption.KeyID?
  ) throws(TidemarkError) {
    let fileSystem = environment.fileSystem
    func files(of store: String) -> AttachmentFiles {
      AttachmentFiles(fileSystem, store: store, keys: keys, random: environment.randomBytes)
    }
    var faults = try files(of: path).copy(to: target, fileSystem, checks: true)
    if key != nil, let fault = try files(of: target).rewriteWithCurrentKey() {
      faults.append(fault)
    }
    report.losses += faults.map { fault in
      RepairLoss(
        file: fault.file ?? StoreLayout.attachmentDirectory, offset: fault.offset ?? 0,
        reason: fault.message)
    }
  }

  /// MANIFEST of the new store. It is the same store, with its ids, as far as these can be read.
  private mutating func newManifest(_ plan: RepairPlan) throws(TidemarkError) -> Manifest {
    var result: Manifest
    if let manifest {
      result = manifest
    } else {
      let storeID = sources.lazy.compactMap(\.storeID).first ?? environment.randomBytes(16)
      result = Manifest(
        storeID: storeID, replicaID: environment.randomBytes(16), bootID: [],
        hashSeed: environment.random.next())
      result.epochs = [Manifest.Epoch(epoch: environment.random.next(), firstSequence: 1)]
      report.notes.append(
        "the replica's id, the epochs and the retention were in MANIFEST; the new store has "
          + "new ones")
    }
    // Without MANIFEST nothing tells whether new files are encrypted: then given keys count.
    let isEncrypted = manifest?.isEncrypted ?? !keys.isEmpty
    result.keyID = isEncrypted ? try keys.current() : nil
    result.generation = 0
    result.segments = []
    result.runs = []
    let ends = sources.compactMap { $0.coverage?.upperBound }
    result.lastSequence = max(result.lastSequence, plan.covered.last ?? 0, ends.max() ?? 0)
    result.latestCommitTime = sources.reduce(result.latestCommitTime) {
      max($0, $1.latestCommitTime)
    }
    report.lastSequence = result.lastSequence
    return result
  }

  /// Reports all lost sequences; without MANIFEST also those that no file covers.
  private mutating func reportLosses(_ plan: RepairPlan, last: UInt64) {
    var lost = plan.lost
    for source in sources {
      for loss in source.losses {
        // Not where another file has given all of these sequences.
        if let range = loss.sequences, SequenceSet(range).intersection(plan.lost).isEmpty {
          continue
        }
        report.losses.append(loss)
      }
    }
    if manifest == nil, last > 0 {
      for range in SequenceSet(1...last).subtracting(plan.covered).ranges {
        lost.insert(range)
        report.losses.append(
          RepairLoss(
            file: StoreLayout.logDirectory, offset: 0, sequences: range,
            reason: "no file of the log covers these sequences"))
      }
    }
    report.lost = lost
  }

  /// Works out without MANIFEST from where history is whole: above all gaps and broken links.
  private mutating func inferHistory(
    _ result: inout Manifest, _ plan: RepairPlan, danglingAt dangling: UInt64
  ) {
    let dropped = plan.dropped.last ?? 0
    result.droppedThrough = dropped
    result.evictedThrough = dropped
    result.historyFrom = max(1, dropped, dangling)
    guard result.historyFrom > 1 else { return }
    report.notes.append(
      "compaction had dropped history; views from sequence \(result.historyFrom) on are right")
  }

  /// Puts lost sequences on record as accepted damage; some are joined so that room for more stays.
  private func recordHoles(in result: inout Manifest) {
    let kept = (manifest?.damage ?? []).filter { $0.state == .accepted }
    var lost = report.lost
    let isMuch = kept.count > Limits.damageRecords / 2
    if isMuch {
      for record in kept {
        lost.insert(record.firstSequence...max(record.firstSequence, record.lastSequence))
      }
    }
    result.damage = isMuch ? [] : kept
    let room = Limits.damageRecords / 2 - Limits.damageRecords / 8
    for range in lost.coarsened(to: room).ranges {
      let loss = report.losses.first { $0.sequences?.overlaps(range) ?? false }
      let reason = loss.map { "\($0.file), offset \($0.offset): \($0.reason)" } ?? "lost"
      result.damage.append(
        Manifest.Damage(
          state: .accepted, segmentID: 0, offset: loss?.offset ?? 0, length: 0,
          firstSequence: range.lowerBound, lastSequence: range.upperBound,
          reason: Array(reason.utf8.prefix(512))))
    }
  }
}
