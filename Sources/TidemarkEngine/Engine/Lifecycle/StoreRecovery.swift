/// Works out what a store holds: where its log ends, and its index.
struct StoreRecovery {
  let path: String
  let configuration: EngineConfiguration
  let environment: EngineEnvironment
  let contexts: ZstdContexts
  let keys: KeyRing
  let caches: LogCaches
  private(set) var segments: [Segment] = []
  private(set) var tail: RecoveredTail?
  private(set) var lastSequence: UInt64
  private(set) var latestCommitTime: UInt64
  private(set) var durable: UInt64
  private(set) var index: Index?
  private(set) var usage = SpaceUsage()
  var staleBelow: UInt64 = 0
  /// The findings of the walk over the active segment, to be applied to the index.
  /// Nil when there was none to walk.
  private var activeFronts: [DecodedFront]?

  init(
    path: String, configuration: EngineConfiguration, environment: EngineEnvironment,
    contexts: ZstdContexts, keys: KeyRing, manifest: Manifest
  ) {
    self.path = path
    self.configuration = configuration
    self.environment = environment
    self.contexts = contexts
    self.keys = keys
    caches =
      configuration.sharedCaches.map { LogCaches(sharing: $0) }
      ?? LogCaches(bytes: configuration.cacheBytes)
    segments = manifest.segments.map {
      Segment(
        $0, storeID: manifest.storeID, storePath: path, fileSystem: environment.fileSystem,
        contexts: contexts, keys: keys)
    }
    lastSequence = manifest.lastSequence
    if PlantedBug.isOn(.sequenceReused) { lastSequence = 0 }
    for row in manifest.segments where row.state == .sealed {
      lastSequence = max(lastSequence, row.lastSequence)
    }
    latestCommitTime = manifest.latestCommitTime
    durable = lastSequence
  }

  private var fileSystem: any FileSystem { environment.fileSystem }
  private func log(_ name: String) -> String { path + "/" + StoreLayout.logDirectory + "/" + name }

  /// Whether there is an unsealed segment to be sealed before anything is written.
  var needsSealing: Bool { tail != nil }

  /// The last sealed segment must have the length that it was sealed with: a cheap look that
  /// finds a file which was cut. One that a later version wrote is refused.
  func checkLastSegment(_ manifest: Manifest) throws(TidemarkError) {
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
    } catch let error as FileSystemError {
      throw TidemarkError(error, while: "reading the log")
    } catch let error as TidemarkError {
      if error.code != .formatTooNew,
        configuration.access == .readOnly || configuration.recovery == .salvage
      {
        return
      }
      throw error
    } catch { return }
  }

  /// Walks the segment that was open for appending.
  mutating func walkActive(_ manifest: Manifest) throws(TidemarkError) {
    guard let row = manifest.segments.last, row.state == .active, let segment = segments.last
    else { return }
    var fronts: [DecodedFront] = []
    let found: RecoveredTail
    do {
      let boot = try fileSystem.bootIdentifier()
      let file = try segment.file()
      let recovery = try TailRecovery(
        row: row, file: file, codecs: try tailCodecs(segment),
        sameBoot: boot == manifest.bootID)
      found = try recovery.run { fronts.append(contentsOf: $0) }.get()
    } catch let error as FileSystemError {
      throw TidemarkError(error, while: "recovering the log")
    } catch let error as TidemarkError {
      throw error
    } catch {
      throw TidemarkError(.inputOutput, "the log cannot be recovered", cause: error)
    }
    if case .damage(let damage) = found.remainder {
      guard configuration.recovery == .salvage else {
        throw TidemarkError(
          .damaged,
          "damage to acknowledged data: \(damage.reason.reason); repair what is left into a new "
            + "store",
          file: segment.fileName, offset: damage.offset,
          sequences: damage.firstSequence...damage.lastSequence)
      }
      staleBelow = damage.lastSequence + 1
    }
    segment.adopt(found.table, lastSequence: found.lastSequence)
    activeFronts = fronts
    lastSequence = max(lastSequence, found.lastSequence)
    latestCommitTime = max(latestCommitTime, found.latestCommitTime)
    durable = max(durable, found.durableSequence)
    tail = found
  }

  /// Seals the segment that was walked: quarantines what lies behind its end, writes what was
  /// not proven to be on the disk again, syncs, and says so in MANIFEST.
  mutating func sealRecovered(
    _ manifest: inout Manifest, _ manifests: ManifestStore
  ) throws(TidemarkError) {
    guard let tail, let row = manifest.segments.last, let segment = segments.last else { return }
    var updated = manifest
    updated.latestCommitTime = max(updated.latestCommitTime, latestCommitTime)
    updated.lastSequence = max(updated.lastSequence, lastSequence)
    // An image of entries that a sync lied about must not be believed once their sequences are
    // given out again.
    if !PlantedBug.isOn(.imageAheadOfLog) {
      updated.images.removeAll { $0.sequence > lastSequence }
    }
    do {
      let file = try fileSystem.open(log(row.fileName), .readWrite)
      defer { file.close() }
      // A quarantined piece would keep the key that is being changed.
      if case .torn(let end) = tail.remainder, try keys.current() == row.keyID {
        try Quarantine(fileSystem, storePath: path).keep(
          file, from: tail.end, to: end, name: row.fileName)
      }
      if tail.entryCount == 0 {
        // Beginnings of a batch may stand in it: were the file to stay behind when MANIFEST no
        // longer lists it, they would look like a part of the log that MANIFEST has lost.
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
        let sealed = try sealed(appender)
        updated.segments[updated.segments.count - 1] = sealed
        try manifests.update(&updated)
        segment.seal(length: sealed.length)
      }
    } catch let error as FileSystemError {
      throw TidemarkError(error, while: "recovering the log")
    } catch let error as TidemarkError {
      throw error
    } catch {
      throw TidemarkError(.inputOutput, "the log cannot be recovered", cause: error)
    }
    durable = lastSequence
    manifest = updated
    self.tail = nil
  }

  private func sealed(_ appender: SegmentAppender) throws(TidemarkError) -> Manifest.Segment {
    do throws(LogReadError) { return try appender.seal() } catch {
      throw appender.segment.damage(error, offset: appender.length)
    }
  }

  /// The decoder of the segment that was open; one that is not encrypted needs nothing of its
  /// header, which may be lost.
  private func tailCodecs(_ segment: Segment) throws(TidemarkError) -> FrameCodecs {
    segment.keyID == nil ? FrameCodecs(contexts: contexts) : try segment.codecs()
  }

  /// Frames above the last proven sequence are written again.
  private func rewriteStart(_ tail: RecoveredTail, _ row: Manifest.Segment) -> Int {
    if PlantedBug.isOn(.tailNotRewritten) { return tail.end }
    let last = tail.table.frames.last { frame in
      row.firstSequence + UInt64(frame.firstSlot) + UInt64(frame.entryCount) - 1
        <= tail.durableSequence
    }
    guard let last else { return 0 }
    return Int(last.offset)
  }

  /// Makes the index: the newest image that serves, and what came after it.
  mutating func makeIndex(_ manifest: Manifest) throws(TidemarkError) {
    let builder = IndexBuilder(
      path: path, environment: environment, keys: keys, manifest: manifest,
      segments: segments, lastSequence: lastSequence)
    let built = try builder.build(active: activeFronts, salvage: configuration.recovery == .salvage)
    index = built.index
    usage = built.usage
    staleBelow = max(staleBelow, built.staleBelow)
    activeFronts = nil
  }

  func opened(
    manifests: ManifestStore, lock: (any FileLock)?, manifest: Manifest, canWrite: Bool
  ) throws(TidemarkError) -> Opened {
    guard let index else { throw TidemarkError(.damaged, "the index could not be made") }
    return Opened(
      manifest: manifest, manifests: manifests, lock: lock, segments: segments, index: index,
      caches: caches, keys: keys, usage: usage, lastSequence: lastSequence,
      latestCommitTime: latestCommitTime, durable: durable, canWrite: canWrite)
  }

  /// Removes files that MANIFEST does not list: what compactions, images and creations left
  /// when they were interrupted. One that holds entries beyond the end of the log is damage.
  func removeLeftovers(_ manifest: Manifest) throws(TidemarkError) {
    do {
      let listed = Set(manifest.segments.map(\.fileName))
      for name in try StoreDirectory.names(in: StoreLayout.logDirectory, of: path, fileSystem)
      where !listed.contains(name) {
        if try holdsMore(log(name), than: lastSequence, manifest) {
          throw TidemarkError(
            .damaged,
            "a file that MANIFEST does not list holds entries beyond the end of the log; "
              + "repair into a new store",
            file: StoreLayout.logDirectory + "/" + name, offset: 0)
        }
        try fileSystem.remove(log(name))
      }
      let images = Set(manifest.images.map(\.fileName))
      let directory = path + "/" + StoreLayout.indexDirectory
      for name in try StoreDirectory.names(in: StoreLayout.indexDirectory, of: path, fileSystem)
      where !images.contains(name) {
        try fileSystem.remove(directory + "/" + name)
      }
    } catch let error as FileSystemError {
      throw TidemarkError(error, while: "clearing leftovers")
    } catch let error as TidemarkError {
      throw error
    } catch {
      throw TidemarkError(.inputOutput, "leftovers cannot be cleared", cause: error)
    }
  }

  private func holdsMore(
    _ file: String, than sequence: UInt64, _ manifest: Manifest
  ) throws(FileSystemError) -> Bool {
    let opened = try fileSystem.open(file, .read)
    defer { opened.close() }
    let header: SegmentHeader
    do throws(LogReadError) { header = try SegmentReader.header(opened) } catch {
      // A file that cannot be read now must not be taken for one without anything in it.
      if case .system(let error) = error { throw error }
      return false
    }
    guard header.storeID == manifest.storeID, header.baseSequence > sequence else { return false }
    return try hasFrames(opened, header)
  }

  private func hasFrames(
    _ file: any File, _ header: SegmentHeader
  ) throws(FileSystemError) -> Bool {
    let walker = FrameWalker(
      try WindowReader(file), salt: header.salt, codecs: FrameCodecs(contexts: contexts),
      from: header.firstFrame)
    return try walker.search(from: header.firstFrame, sequence: 1) != nil
  }
}
