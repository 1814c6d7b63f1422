extension Engine {
  /// Opens a store.
  package static func open(
    _ path: String, configuration: EngineConfiguration,
    environment: EngineEnvironment = EngineEnvironment()
  ) throws(TidemarkError) -> Engine {
    let files = ClosableFileSystem(environment.fileSystem)
    var environment = environment
    environment.fileSystem = files
    let opener = StoreOpener(path: path, configuration: configuration, environment: environment)
    let start = environment.clock.monotonicNanoseconds()
    let opened = try opener.open()
    let store = StoreContext(
      path: path, configuration: configuration, environment: environment, keys: opened.keys,
      caches: opened.caches)
    let engine = Engine(store, files: files, opened)
    if let retention = configuration.retention, opened.canWrite,
      retention != opened.manifest.retention
    {
      try engine.setRetention(retention)
    }
    if let (entries, bytes) = opened.recovered {
      store.tell(.recovered, entries: entries, bytes: bytes)
    }
    store.tell(
      .opened, from: start, entries: Int(clamping: opened.lastSequence),
      bytes: opened.segments.reduce(0) { $0 + $1.usedLength() })
    return engine
  }
}

extension Engine {
  /// Deletes a store that nobody has open for writing.
  package static func delete(
    _ path: String, environment: EngineEnvironment = EngineEnvironment()
  ) throws(TidemarkError) { try StoreDirectory.delete(path, environment) }
}

/// Opens a store: checks the directory, takes the lock, reads MANIFEST, and has `StoreRecovery`
/// find the log's end and make the index. Without the lock it writes nothing.
struct StoreOpener {
  let path: String
  let configuration: EngineConfiguration
  let environment: EngineEnvironment
  let contexts = ZstdContexts()
  let keys: KeyRing

  init(path: String, configuration: EngineConfiguration, environment: EngineEnvironment) {
    self.path = path
    self.configuration = configuration
    self.environment = environment
    keys = KeyRing(configuration.encryption, beside: configuration.newKey)
  }

  var fileSystem: any FileSystem { environment.fileSystem }
  /// Whether the store is locked and written to. Salvage, which reads around damage, only reads.
  var writes: Bool { configuration.access != .readOnly && configuration.recovery == .strict }

  func open() throws(TidemarkError) -> Opened {
    // A key that is missing must fail before the directory is made.
    if configuration.access == .create { _ = try keys.current() }
    try StoreDirectory.check(path, fileSystem, creates: configuration.access == .create)
    var lock: (any FileLock)?
    if writes { lock = try StoreDirectory.lock(path, environment) }
    do {
      return try reopen(lock)
    } catch {
      lock?.release()
      throw error
    }
  }

  /// Opens a store whose directory was checked. Where this throws, the caller releases the lock.
  func reopen(_ lock: (any FileLock)?) throws(TidemarkError) -> Opened {
    guard writes else { return try openBesideWriter() }
    do { return try openOnce(lock) } catch {
      // Recovery writes: on a full disk it may have the space that the ballast file sets aside.
      let ballast = Ballast(fileSystem: fileSystem, storePath: path)
      guard error.code == .noSpace, ballast.release() else { throw error }
      return try openOnce(lock)
    }
  }

  /// Opens without the lock. A writer may replace files meanwhile, or have written a frame only in
  /// part: an error counts at once if it is no damage and MANIFEST has not changed, and damage when
  /// it is found a second time at one place with the same MANIFEST.
  private func openBesideWriter() throws(TidemarkError) -> Opened {
    var failure: TidemarkError?
    for _ in 0..<Limits.openAttempts {
      let before = try? ManifestStore(fileSystem, storePath: path).load()?.manifest.generation
      do throws(TidemarkError) { return try openOnce(nil) } catch {
        let after = try? ManifestStore(fileSystem, storePath: path).load()?.manifest.generation
        let isSame =
          before == after && error.code == failure?.code && error.file == failure?.file
          && error.offset == failure?.offset
        failure = error
        guard error.code == .damaged || before != after, !isSame else { throw error }
      }
    }
    throw failure ?? TidemarkError(.inputOutput, "the store changes too fast to be opened")
  }

  private func openOnce(_ lock: (any FileLock)?) throws(TidemarkError) -> Opened {
    let manifests = ManifestStore(fileSystem, storePath: path)
    let manifest: Manifest
    if let loaded = try loadManifest(manifests) {
      manifest = loaded.manifest
      try keys.check(manifest, writes: writes)
      if let damage = manifest.damage.first(where: { $0.state == .found }), writes {
        throw Self.refusal(damage, in: manifest)
      }
      let unknown = manifest.readOnlyFeatures & ~FormatConstants.knownReadOnlyFeatures
      if writes, unknown != 0 {
        throw TidemarkError(
          .formatTooNew,
          "a later version wrote the store, which this one can read and not write; "
            + "open it read-only or use a newer version",
          file: StoreLayout.manifests[0])
      }
      // After a crash the copies may be equal in the kernel's memory and not on the disk.
      if writes, !(manifest.isClosedCleanly && loaded.areEqual) { try manifests.heal(loaded) }
    } else {
      guard configuration.access == .create else { throw StoreDirectory.cutOff(path) }
      manifest = try create(manifests)
    }
    var recovery = StoreRecovery(self, manifest, manifests)
    let opened = try recovery.run(lock)
    // Files that are open stay readable though a writer in another process replaces them.
    if lock == nil { try openAhead(opened) }
    return opened
  }

  /// Opens the newest segments ahead of their use. An error is left to the read that needs the
  /// file, unless MANIFEST has changed: then `openBesideWriter` opens everything anew.
  private func openAhead(_ opened: Opened) throws(TidemarkError) {
    for segment in opened.segments.suffix(Limits.openSegments) {
      do { _ = try segment.file() } catch {
        let now = try? opened.manifests.load()?.manifest.generation
        guard now == opened.manifest.generation else { throw error }
        if error.code != .damaged { return }
      }
    }
  }

  /// Reads both copies of MANIFEST; nil where a creation was cut off before there was data.
  private func loadManifest(
    _ manifests: ManifestStore
  ) throws(TidemarkError) -> ManifestStore.Loaded? {
    do {
      return try manifests.load()
    } catch {
      guard error.code == .damaged,
        try configuration.access == .create
          ? StoreDirectory.hasNoData(path, fileSystem)
          : StoreDirectory.isHalfCreated(path, fileSystem)
      else { throw error }
      return nil
    }
  }

  /// The error for damage on record that no repair has dealt with yet.
  static func refusal(_ damage: Manifest.Damage, in manifest: Manifest) -> TidemarkError {
    let name = manifest.segments.first { $0.id == damage.segmentID }?.fileName
    return TidemarkError(
      .damaged,
      "damage to acknowledged data is on record: \(String(decoding: damage.reason, as: UTF8.self));"
        + " repair what is left into a new store",
      file: StoreLayout.logDirectory + "/" + (name ?? "?"), offset: damage.offset,
      sequences: damage.firstSequence...max(damage.firstSequence, damage.lastSequence))
  }

  /// Creates the store's folders and, last, MANIFEST: without it they count as no store.
  private func create(_ manifests: ManifestStore) throws(TidemarkError) -> Manifest {
    let keyID = try keys.current()
    try StoreDirectory.createFolders(path, fileSystem)
    var manifest = Manifest(
      storeID: environment.randomBytes(16), replicaID: environment.randomBytes(16),
      bootID: [], hashSeed: environment.random.next())
    manifest.retention = configuration.retention ?? .everything
    manifest.keyID = keyID
    manifest.isClosedCleanly = true
    do {
      manifest.bootID = try environment.bootIdentifier()
      try manifests.update(&manifest)
      try fileSystem.syncDirectory(path)
    } catch { throw TidemarkError(wrapping: error, while: "creating the store") }
    return manifest
  }
}
