internal import Tidemark
internal import TidemarkEngine

/// The small store that the targets `segment` and `store` change: an appended segment and a
/// compacted one with a dictionary, a sorted run, labels, touches, deletes, a long value.
struct FuzzStore: Sendable {
  /// A version that may be read at a sequence.
  struct Version: Sendable, Equatable {
    var key: [UInt8]
    /// Nil for a delete.
    var value: [UInt8]?
  }

  var disk: FuzzDisk
  /// Every version that is or was in the log.
  var versions: [UInt64: Version] = [:]
  /// All keys.
  var keys: [[UInt8]] = []

  var manifest: Manifest? { disk.manifest }

  /// Left behind by a process that was killed, and closed.
  static let all: [FuzzStore] = (try? make()) ?? []

  /// How the stores of the fuzz targets are opened.
  static func configuration(
    _ disk: MemoryFileSystem, _ access: Store.Access, _ recovery: Store.Recovery = .strict
  ) -> Store.Configuration {
    Store.Configuration(
      access: access, recovery: recovery, cacheBytes: 1 << 16,
      environment: Store.Environment(
        fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: 3)),
      usesThreads: false)
  }

  private static func make() throws -> [FuzzStore] {
    var result = FuzzStore(disk: FuzzDisk())
    let disk = MemoryFileSystem()
    var store = try Store.openBlocking(
      at: FuzzDisk.path, configuration: configuration(disk, .create))
    try result.fill(store, from: 0, to: 20)
    try result.put(store, "long", value: Array((0..<17_000).map { UInt8($0 / 99 & 31) }))
    try store.blocking.compact()
    try store.blocking.snapshot()
    try store.blocking.close()
    // Small stores get no dictionary by themselves.
    var files = try FuzzDisk(reading: disk)
    try files.addDictionary()
    let second = try files.disk()
    store = try Store.openBlocking(
      at: FuzzDisk.path, configuration: configuration(second, .write))
    try result.fill(store, from: 13, to: 30)
    try store.blocking.snapshot()
    try result.fill(store, from: 27, to: 33)
    try store.blocking.flush()
    try result.remember(store)
    var killed = result
    killed.disk = try FuzzDisk(reading: second)
    killed.disk.files[StoreLayout.lock] = nil
    try store.blocking.close()
    result.disk = try FuzzDisk(reading: second)
    return [killed, result]
  }

  private mutating func put(
    _ store: Store, _ key: String, value: [UInt8], labels: [EntryLabel] = [],
    options: PutOptions = PutOptions()
  ) throws {
    try store.blocking.put(Key(key), value, labels: labels, options: options)
    if !keys.contains(Array(key.utf8)) { keys.append(Array(key.utf8)) }
  }

  private mutating func fill(_ store: Store, from first: Int, to end: Int) throws {
    for number in first..<end {
      let text = "{\"id\":\(number),\"title\":\"note \(number % 7)\",\"end\":\(end)}"
      let labels: [[EntryLabel]] = [[], ["inbox"], ["done", "inbox"], ["later"]]
      var options = PutOptions()
      if number % 4 == 0 { options.time = Timestamp(seconds: 1_767_000_000 + Int64(number)) }
      if number % 6 == 0 { options.hash = [UInt8](repeating: UInt8(number), count: 8) }
      if number % 9 == 0 { options.storageClass = .cache }
      try put(
        store, "note/\(number)", value: Array(text.utf8), labels: labels[number % 4],
        options: options)
      if number % 5 == 0 { try store.blocking.touch(Key("note/\(number)"), maxAge: .seconds(9)) }
      if number % 8 == 7 { try store.blocking.delete(Key("note/\(number)")) }
    }
    var batch = WriteBatch()
    for number in 0..<3 { try batch.put("batch/\(number)", "\(first)", labels: ["inbox"]) }
    try store.blocking.write(batch)
    for number in 0..<3 where first == 0 { keys.append(Array("batch/\(number)".utf8)) }
  }

  /// Notes what every entry says.
  private mutating func remember(_ store: Store) throws {
    for key in keys {
      for entry in try store.history(ofKey: Key(key)) {
        let isThere = entry.kind == .put || entry.kind == .touch
        versions[entry.sequence] = Version(key: key, value: isThere ? entry.value : nil)
      }
    }
  }
}

extension FuzzDisk {
  /// Writes the first compacted segment anew with a dictionary.
  fileprivate mutating func addDictionary() throws {
    guard var manifest, let place = manifest.segments.firstIndex(where: { $0.kind == .compacted })
    else { return }
    let disk = try disk()
    var row = manifest.segments[place]
    let old = row.fileName
    let contexts = ZstdContexts()
    let segment = Segment(
      row, storeID: manifest.storeID, storePath: Self.path, fileSystem: disk, contexts: contexts,
      keys: KeyRing())
    let texts = (0..<200).map { "{\"id\":\($0 * 31),\"title\":\"note \($0 % 7)\",\"end\":\($0)}" }
    let trained = ZstdDictionary.trainDictionary(
      samples: texts.flatMap { Array($0.utf8) }, sampleSizes: texts.map(\.utf8.count),
      capacity: 512)
    row.id = manifest.nextSegmentID
    manifest.nextSegmentID += 1
    var writer = try CompactedSegmentWriter(
      creating: row, storeID: manifest.storeID, storePath: Self.path, fileSystem: disk,
      contexts: contexts, layout: SegmentLayout(dictionary: trained))
    let caches = LogCaches(blockBytes: 1 << 20, frontBytes: 1 << 20)
    var latest: UInt64 = 0
    for record in try segment.frames() {
      let front = try segment.front(record, caches: caches)
      for head in front.entries {
        latest = max(latest, head.commitTime)
        try writer.copy(head, of: front, in: segment, caches)
      }
    }
    manifest.segments[place] = try writer.finish(
      lastSequence: row.lastSequence, latestTime: row.latestTime, latestCommitTime: latest)
    manifest.generation += 1
    self = try FuzzDisk(reading: disk)
    files[StoreLayout.logDirectory + "/" + old] = nil
    set(manifest)
  }
}

extension CompactedSegmentWriter {
  /// Adds an entry of another segment.
  fileprivate mutating func copy(
    _ head: EntryHead, of front: DecodedFront, in segment: Segment, _ caches: LogCaches
  ) throws {
    var entry = FrameBuilder.Entry(
      kind: head.kind, endsBatch: head.endsBatch, sequence: head.sequence,
      commitTime: head.commitTime)
    entry.previous = head.previous
    entry.valueSequence = head.valueSequence
    entry.created = head.created
    var value: [UInt8] = []
    if head.hasValue, let location = try segment.locate(head.sequence) {
      try segment.readValue(at: location, sequence: head.sequence, caches: caches) {
        value = [UInt8](copying: $0)
      }
    }
    let bytes = value
    let labels = front.labels(of: head)
    if head.hasValue {
      try add(
        entry, key: front.key(of: head), value: bytes.rawSpan,
        attributes: front.attributeBytes(of: head), labels: labels)
    } else {
      try add(
        entry, key: front.key(of: head), value: nil,
        attributes: front.attributeBytes(of: head), labels: labels)
    }
  }
}
