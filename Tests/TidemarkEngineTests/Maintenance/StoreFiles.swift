import TidemarkTestKit

@testable import TidemarkEngine

/// The files of a store as bytes, to be damaged and put on a fresh disk in memory.
struct StoreFiles: Sendable {
  static let path = "store"
  var files: [String: [UInt8]] = [:]
  var folders: [String] = []

  init(_ fileSystem: any FileSystem, path: String = StoreFiles.path) throws {
    try read(fileSystem, path, under: "")
  }

  private mutating func read(
    _ fileSystem: any FileSystem, _ path: String, under prefix: String
  ) throws {
    for name in try fileSystem.list(path) {
      let place = path + "/" + name
      if try fileSystem.kind(place) == .directory {
        folders.append(prefix + name)
        try read(fileSystem, place, under: prefix + name + "/")
      } else {
        let file = try fileSystem.open(place, .read)
        defer { file.close() }
        files[prefix + name] = try file.read(try file.length(), at: 0)
      }
    }
  }

  /// A disk that holds nothing but these files.
  func disk() throws -> MemoryFileSystem {
    let disk = MemoryFileSystem()
    try disk.createDirectory(Self.path)
    for folder in folders { try disk.createDirectory(Self.path + "/" + folder) }
    for (name, bytes) in files {
      let file = try disk.open(Self.path + "/" + name, .create)
      try file.writeFully(bytes.rawSpan, at: 0)
      file.close()
    }
    return disk
  }

  var segments: [String] { files.keys.filter { $0.hasSuffix(".seg") }.sorted() }

  func flipping(bit: Int, of offset: Int, in name: String) -> StoreFiles {
    var copy = self
    copy.files[name]?[offset] ^= UInt8(1 << bit)
    return copy
  }

  func cutting(_ name: String, to length: Int) -> StoreFiles {
    var copy = self
    if let bytes = files[name] { copy.files[name] = Array(bytes.prefix(length)) }
    return copy
  }

  func removing(_ names: String...) -> StoreFiles {
    var copy = self
    for name in names { copy.files[name] = nil }
    return copy
  }

  /// Where half of the frames of a sealed segment lie behind.
  func middle(of name: String) throws -> Int {
    let disk = try disk()
    let file = try disk.open(Self.path + "/" + name, .read)
    let row = try manifest().segments.first { name.hasSuffix($0.fileName) }
    let footer = try SegmentReader.footer(
      file, length: try file.length(), salt: row?.salt ?? 0)
    return (try SegmentReader.header(file).firstFrame + footer.locatorOffset) / 2
  }

  func manifest() throws -> Manifest {
    let copies = StoreLayout.manifests.compactMap { name in
      files[name].flatMap { try? Manifest(decoding: $0.rawSpan) }
    }
    guard let best = copies.max(by: { $0.generation < $1.generation }) else {
      throw TidemarkError(.damaged, "no MANIFEST")
    }
    return best
  }
}

/// The answers that a store must give: every entry by sequence, and the newest of every key.
struct ExpectedStore: Sendable {
  struct Entry: Hashable, Sendable {
    var key: [UInt8]
    var kind: EntryKind
    var value: [UInt8]
    var labels: [[UInt8]]
    var attributes: EntryAttributes
    var commitTime: UInt64
    var previous: UInt64
    var valueSequence: UInt64
    var endsBatch: Bool
  }

  var entries: [UInt64: Entry] = [:]
  var newest: [[UInt8]: UInt64] = [:]

  /// Takes down everything in an open store.
  init(_ engine: Engine) throws {
    var cursor = LogCursor(
      engine.reader, from: 1, through: engine.reader.lastSequence, includesRecords: true)
    while let entry = try cursor.next() {
      let value = try engine.reader.withValue(of: entry.sequence) {
        (value, _) throws(TidemarkError) in
        [UInt8](copying: value)
      }
      entries[entry.sequence] = Entry(
        key: entry.key, kind: entry.head.kind, value: value, labels: entry.labels,
        attributes: try entry.attributes(), commitTime: entry.head.commitTime,
        previous: entry.head.previous, valueSequence: entry.head.valueSequence,
        endsBatch: entry.head.endsBatch)
      if entry.head.kind != .record { newest[entry.key] = entry.sequence }
    }
  }

  /// The value that a key reads as; nil when it is absent.
  func value(_ key: [UInt8]) -> [UInt8]? {
    guard let sequence = newest[key], let entry = entries[sequence] else { return nil }
    switch entry.kind {
    case .put: return entry.value
    case .touch: return entries[entry.valueSequence]?.value
    default: return nil
    }
  }
}

extension StoreFiles {
  /// On what engines of these tests run.
  static func environment(_ disk: any FileSystem, seed: UInt64 = 3) -> EngineEnvironment {
    EngineEnvironment(fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: seed))
  }

  static func configuration(
    _ access: EngineConfiguration.Access = .create, segmentBytes: Int = 64 << 20
  ) -> EngineConfiguration {
    var configuration = EngineConfiguration()
    configuration.access = access
    configuration.segmentBytes = segmentBytes
    configuration.doesBackgroundWorkInline = true
    configuration.cacheBytes = 0
    return configuration
  }

  static func open(
    _ disk: any FileSystem, _ access: EngineConfiguration.Access = .write,
    path: String = StoreFiles.path, segmentBytes: Int = 64 << 20
  ) throws -> Engine {
    try Engine.open(
      path, configuration: configuration(access, segmentBytes: segmentBytes),
      environment: environment(disk))
  }

  static func verify(_ disk: any FileSystem, path: String = StoreFiles.path) throws -> VerifyReport
  {
    try StoreVerifier.verify(path, environment: environment(disk))
  }
}

/// Stores to damage.
enum SampleStore {
  /// Writes a bit of everything: batches, labels, own times, hashes, touches, deletes, records,
  /// values from empty to several blocks.
  static func fill(_ engine: Engine, keys: Int, rounds: Int, largest: Int) throws {
    for round in 0..<rounds {
      for number in 0..<keys {
        let key = bytes("key-\(100 + number)")
        var batch = OperationBatch()
        switch (number + round * 3) % 9 {
        case 4 where round > 0: try batch.add(.delete, key: key.rawSpan)
        case 5 where round > 0: try batch.add(.touch, key: key.rawSpan)
        case 6:
          var attributes = EntryAttributes()
          attributes.time = Timestamp(seconds: 1_000_000 + Int64(number), nanoseconds: 5)
          attributes.hash = bytes("0123abcd")
          let set = try batch.addLabelSet([bytes("odd"), bytes("round:\(round)")])
          try batch.add(
            .put, key: key.rawSpan, value: text(number, round, 90).rawSpan, labelSet: set,
            attributes: attributes)
        case 7:
          for part in 0..<4 {
            let partKey = key + bytes("/\(part)")
            let set = try batch.addLabelSet([bytes("part")])
            try batch.add(
              .put, key: partKey.rawSpan, value: text(part, round, 40).rawSpan, labelSet: set)
          }
        case 8:
          try batch.add(.record, key: key.rawSpan, value: text(number, round, 12).rawSpan)
        default:
          let length = [0, 20, 200, largest][(number + round) % 4]
          try batch.add(.put, key: key.rawSpan, value: text(number, round, length).rawSpan)
        }
        try engine.commit(batch)
      }
    }
  }

  private static func text(_ number: Int, _ round: Int, _ length: Int) -> [UInt8] {
    let part = bytes("value \(number) of round \(round), ")
    var text: [UInt8] = []
    while text.count < length { text += part }
    return Array(text.prefix(length))
  }

  /// A small store with one segment, cleanly closed.
  static func small() throws -> (StoreFiles, ExpectedStore) {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    try fill(engine, keys: 12, rounds: 2, largest: 700)
    try engine.checkpointer.writeRun()
    try engine.put("last", "one")
    let expected = try ExpectedStore(engine)
    try engine.close()
    return (try StoreFiles(disk), expected)
  }

  /// A store with compacted and appended segments, sorted runs and values of several blocks.
  static func large() throws -> (StoreFiles, ExpectedStore) {
    let disk = MemoryFileSystem()
    var engine = try StoreFiles.open(disk, .create, segmentBytes: 96 << 10)
    try fill(engine, keys: 60, rounds: 3, largest: 40_000)
    try engine.compact()
    try engine.close()
    engine = try StoreFiles.open(disk, .write, segmentBytes: 96 << 10)
    try fill(engine, keys: 40, rounds: 2, largest: 20_000)
    try engine.checkpointer.writeRun()
    try fill(engine, keys: 20, rounds: 2, largest: 300)
    let expected = try ExpectedStore(engine)
    try engine.close()
    return (try StoreFiles(disk), expected)
  }
}
