/// Finds where the log of a store ends, and makes its index; with the lock also mends its files.
/// All segments are sealed but the last, the active one, whose end a walk over its frames finds.
struct StoreRecovery {
  private let opener: StoreOpener
  private let manifests: ManifestStore
  private var manifest: Manifest
  private var segments: [Segment]
  private var lastSequence: UInt64
  private var latestCommitTime: UInt64
  /// The highest sequence known to be synced; all of a sealed segment is.
  private var durable: UInt64
  /// Below this sequence damage may have hidden writes from the index (salvage).
  private var uncertainBelow: UInt64 = 0
  /// The end of the active segment, which is to be sealed before anything is written.
  private var tail: RecoveredTail?
  /// The frames of the active segment, to be applied to the index; nil when there is none.
  private var activeFronts: [DecodedFront]?

  init(_ opener: StoreOpener, _ manifest: Manifest, _ manifests: ManifestStore) {
    self.opener = opener
    self.manifests = manifests
    self.manifest = manifest
    segments = manifest.segments.map {
      Segment(
        $0, storeID: manifest.storeID, storePath: opener.path, fileSystem: opener.fileSystem,
        contexts: opener.contexts, keys: opener.keys)
    }
    lastSequence = manifest.lastSequence
    if PlantedBug.isOn(.sequenceReused) { lastSequence = 0 }
    for row in manifest.segments where row.state == .sealed {
      lastSequence = max(lastSequence, row.lastSequence)
    }
    latestCommitTime = manifest.latestCommitTime
    durable = lastSequence
  }

  private var path: String { opener.path }
  private var configuration: EngineConfiguration { opener.configuration }
  private var fileSystem: any FileSystem { opener.fileSystem }
  private func log(_ name: String) -> String { path + "/" + StoreLayout.logDirectory + "/" + name }

  /// Finds the log's end and makes the index, from sorted runs and the entries after them.
  mutating func run(_ lock: (any FileLock)?) throws(TidemarkError) -> Opened {
    try checkLastSegment()
    try walkActive()
    if opener.writes {
      // Before the first write: a file with entries beyond the log's end is damage, and throws.
      try removeLeftovers()
      try sealRecovered()
    }
    let builder = IndexBuilder(
      path: path, environment: opener.environment, keys: opener.keys, manifest: manifest,
      segments: segments, lastSequence: lastSequence)
    let built = try builder.build(active: activeFronts, salvage: configuration.recovery == .salvage)
    return Opened(
      manifest: manifest, manifests: manifests, lock: lock, segments: segments, index: built.index,
      caches: configuration.sharedCaches.map { LogCaches(sharing: $0) }
        ?? LogCaches(bytes: configuration.cacheBytes),
      keys: opener.keys, usage: built.usage, lastSequence: lastSequence,
      latestCommitTime: latestCommitTime, durable: durable,
      uncertainBelow: max(uncertainBelow, built.uncertainBelow), canWrite: opener.writes,
      recovered: opener.writes ? tail.map { ($0.entryCount, $0.end) } : nil)
  }

  /// Checks that the last sealed segment was not cut, and that no later version wrote it.
  private func checkLastSegment() throws(TidemarkError) {
    guard let row = manifest.segments.last(where: { $0.state == .sealed }),
      let segment = segments.first(where: { $0.id == row.id })
    else { return }
    do {
      let file = try segment.file()
      guard try file.length() == row.length else {
        throw segment.damage(
          .format(FormatError("segment has another length than it was sealed with")), offset: 0)
      }
      do throws(LogReadError) { _ = try SegmentReader.header(file) } catch {
        if case .format(let reason) = error, reason.isNewer {
          throw segment.damage(error, offset: 0)
        }
      }
    } catch {
      // Who only reads goes on: a read that needs what is missing fails by itself.
      let isLenient = configuration.access == .readOnly || configuration.recovery == .salvage
      if isLenient, let error = error as? TidemarkError, error.code != .formatTooNew { return }
      throw TidemarkError(wrapping: error, while: "reading the log")
    }
  }

  /// Walks the active segment. While the machine has not started again (`sameBoot`) the kernel has
  /// lost nothing, so that an invalid frame before a valid one is damage, and no torn tail.
  private mutating func walkActive() throws(TidemarkError) {
    guard let row = manifest.segments.last, row.state == .active, let segment = segments.last
    else { return }
    var fronts: [DecodedFront] = []
    let found: RecoveredTail
    do {
      let file = try segment.file()
      let recovery = try TailRecovery(
        row: row, file: file, codecs: try tailCodecs(segment),
        sameBoot: try opener.environment.bootIdentifier() == manifest.bootID)
      found = try recovery.run { fronts.append(contentsOf: $0) }.get()
    } catch { throw TidemarkError(wrapping: error, while: "recovering the log") }
    if case .damage(let damage) = found.remainder {
      guard configuration.recovery == .salvage else {
        throw TidemarkError(
          .damaged,
          "damage to acknowledged data: \(damage.reason.reason); repair what is left into a new "
            + "store",
          file: segment.fileName, offset: damage.offset,
          sequences: damage.firstSequence...damage.lastSequence)
      }
      uncertainBelow = damage.lastSequence + 1
    }
    segment.adopt(found.table, lastSequence: found.lastSequence)
    activeFronts = fronts
    lastSequence = max(lastSequence, found.lastSequence)
    latestCommitTime = max(latestCommitTime, found.latestCommitTime)
    durable = max(durable, found.durableSequence)
    tail = found
  }

  /// Seals the active segment: quarantines a torn tail, writes again what may not be on the disk,
  /// syncs, and says so in MANIFEST.
  private mutating func sealRecovered() throws(TidemarkError) {
    guard let tail, let row = manifest.segments.last, let segment = segments.last else { return }
    var updated = manifest
    updated.latestCommitTime = max(updated.latestCommitTime, latestCommitTime)
    updated.lastSequence = max(updated.lastSequence, lastSequence)
    // Such a run knows entries that a disk lost after a sync, and whose sequences are used again.
    if !PlantedBug.isOn(.runAheadOfLog) {
      updated.runs.removeAll { $0.sequence > lastSequence }
    }
    do {
      let file = try fileSystem.open(log(row.fileName), .readWrite)
      defer { file.close() }
      // Not where the encryption key has changed: the piece would keep the former one in use.
      if case .torn(let end) = tail.remainder, try opener.keys.current() == row.keyID {
        try Quarantine(fileSystem, storePath: path).keep(
          file, from: tail.end, to: end, name: row.fileName)
      }
      if tail.entryCount == 0 {
        // Frames of an unfinished batch may stand in it. They go first: a crash may leave the file
        // when MANIFEST lists it no more, and `removeLeftovers` would take them for lost entries.
        try file.truncate(to: min(try file.length(), FormatConstants.segmentHeaderBytes))
        try file.sync()
        updated.segments.removeLast()
        try manifests.update(&updated)
        try fileSystem.remove(log(row.fileName))
        segments.removeLast()
        activeFronts = nil
      } else {
        let appender = SegmentAppender(
          recovered: tail, row: row, segment: segment, file: file,
          codecs: try tailCodecs(segment))
        try file.truncate(to: tail.end)
        try appender.rewrite(from: rewriteStart(tail, row))
        let sealed: Manifest.Segment
        do throws(LogReadError) { sealed = try appender.seal() } catch {
          throw segment.damage(error, offset: appender.length)
        }
        updated.segments[updated.segments.count - 1] = sealed
        try manifests.update(&updated)
        segment.seal(length: sealed.length)
      }
    } catch { throw TidemarkError(wrapping: error, while: "recovering the log") }
    durable = lastSequence
    manifest = updated
  }

  /// The decoder of the active segment; without encryption it needs no header, which may be lost.
  private func tailCodecs(_ segment: Segment) throws(TidemarkError) -> FrameCodecs {
    segment.keyID == nil ? FrameCodecs(contexts: opener.contexts) : try segment.codecs()
  }

  /// Where frames are written again from, the last one known to be synced: after a failed sync the
  /// kernel may not write its pages again by itself.
  private func rewriteStart(_ tail: RecoveredTail, _ row: Manifest.Segment) -> Int {
    if PlantedBug.isOn(.tailNotRewritten) { return tail.end }
    let last = tail.table.frames.last { frame in
      row.firstSequence + UInt64(frame.firstSlot) + UInt64(frame.entryCount) - 1
        <= tail.durableSequence
    }
    guard let last else { return 0 }
    return Int(last.offset)
  }

  /// Removes files that MANIFEST does not list: interrupted compactions and index runs leave them.
  /// One that holds entries beyond the end of the log is damage.
  private func removeLeftovers() throws(TidemarkError) {
    do {
      let listed = manifest.fileNames
      for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
        for name in try StoreDirectory.names(in: folder, of: path, fileSystem)
        where !listed.contains(name) {
          let file = folder + "/" + name
          if folder == StoreLayout.logDirectory,
            try fileSystem.firstSequence(
              in: path + "/" + file, behind: lastSequence, of: manifest, contexts: opener.contexts)
              != nil
          {
            throw TidemarkError(
              .damaged,
              "a file that MANIFEST does not list holds entries beyond the end of the log; "
                + "repair into a new store",
              file: file, offset: 0)
          }
          try fileSystem.remove(path + "/" + file)
        }
      }
    } catch { throw TidemarkError(wrapping: error, while: "clearing leftovers") }
  }
}

extension Manifest {
  /// The names of the files of log and index that it lists.
  var fileNames: Set<String> { Set(segments.map(\.fileName) + runs.map(\.fileName)) }
}

extension FileSystem {
  /// Looks for entries of a store behind the end of its log in a file that MANIFEST does not list.
  /// - Parameter least: frames that begin below this sequence do not count.
  /// - Returns: the sequence with which the first frame begins; nil when there is none.
  func firstSequence(
    in path: String, behind last: UInt64, from least: UInt64 = 1, of manifest: Manifest,
    contexts: ZstdContexts
  ) throws(FileSystemError) -> UInt64? {
    let file = try self.open(path, .read)
    defer { file.close() }
    let header: SegmentHeader
    do throws(LogReadError) { header = try SegmentReader.header(file) } catch {
      // A file that cannot be read now must not be taken for one without anything in it.
      if case .system(let error) = error { throw error }
      return nil
    }
    // A file that begins at or before the log's end is an input or output of a compaction.
    guard header.storeID == manifest.storeID, header.baseSequence > last else { return nil }
    let walker = FrameWalker(
      try WindowReader(file), salt: header.salt, codecs: FrameCodecs(contexts: contexts),
      from: header.firstFrame)
    return try walker.search(from: header.firstFrame, sequence: least)?.header.firstSequence
  }
}
