internal import TidemarkEngine

/// Opens a sorted run, looks up keys, walks it in both directions, by label too, and merges a
/// delta over it. With repair the body is the fields of the header page, as far as these go, and
/// the data without checksums; else it is the file. Options: bit 1, tombstones and former members
/// leave with the merge.
enum RunFuzz {
  private static let headerFields = 564
  private static let seed: UInt64 = 0xfeed_beef
  private static let storeID = [UInt8](repeating: 7, count: 16)
  private static let labels: [[UInt8]] = ["done", "inbox", "later", "x"].map { Array($0.utf8) }

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    do {
      let disk = MemoryFileSystem()
      let run = try SortedRun(file: write(file(input), "/sorted run", disk))
      let index = Index(runs: RunList([run]), seed: run.header.seed)
      _ = try? run.userInfo()
      try read(index)
      try merge(index, disk, drops: input.flag(1))
    } catch let error as FuzzFinding {
      throw error
    } catch {}
  }

  private static func file(_ input: FuzzInput) -> [UInt8] {
    guard input.repairs else { return input.body }
    let page = ChecksumRepair.runHeaderBytes
    var bytes = input.slice(0, headerFields)
    bytes.append(contentsOf: repeatElement(0, count: page - bytes.count))
    var offset = headerFields
    while offset < input.body.count {
      bytes += input.slice(offset, ChecksumRepair.runChunkBytes)
      bytes.append(contentsOf: repeatElement(0, count: 8))
      offset += ChecksumRepair.runChunkBytes
    }
    bytes.set(UInt64(max(0, input.body.count - headerFields)), at: 104)
    ChecksumRepair.run(&bytes)
    return bytes
  }

  private static func write(
    _ bytes: [UInt8], _ path: String, _ disk: MemoryFileSystem
  ) throws(FileSystemError) -> any File {
    let file = try disk.open(path, .create)
    try file.writeFully(bytes.rawSpan, at: 0)
    return file
  }

  private static func key(_ number: Int) -> [UInt8] {
    Array((number % 3 == 0 ? "note/archive/2026/" : "note/").utf8) + Array("\(number * 37)".utf8)
  }

  // MARK: Reading

  private static func read(_ index: Index) throws(FuzzFinding) {
    for number in 0..<50 {
      let key = key(number)
      _ = try? index.lookup(key.rawSpan, hash: index.hash(key.rawSpan))
    }
    let up = try walk(index, descending: false, nil, former: true)
    let down = try walk(index, descending: true, nil, former: true)
    // Keys that somebody has put out of order may be met in another one on the way back.
    if let up, let down, isSorted(up), up != down.reversed() {
      throw FuzzFinding("keys differ with the direction of the walk")
    }
    for key in (up ?? []).prefix(40) where !key.isEmpty {
      _ = try? index.lookup(key.rawSpan, hash: index.hash(key.rawSpan))
      _ = try walk(
        index, descending: false, nil, former: false, from: .including(key), pages: 2)
      _ = try walk(index, descending: true, nil, former: false, from: .excluding(key), pages: 2)
    }
    let queries = [
      LabelQuery(all: [labels[0]]), LabelQuery(any: Array(labels.prefix(3)), not: [labels[2]]),
      LabelQuery(all: Array(labels.prefix(2))), LabelQuery(not: [labels[1]]),
    ]
    for query in queries {
      for former in [false, true] {
        _ = try walk(index, descending: former, query, former: former)
      }
    }
    _ = try? index.labelCounts()
    for set in 0..<12 { _ = try? index.labelTable.labels(ofSet: UInt32(set)) }
  }

  private static func isSorted(_ keys: [[UInt8]]) -> Bool {
    zip(keys, keys.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) }
  }

  /// The keys of a walk; nil when it ended with an error or at the limit of pages.
  private static func walk(
    _ index: Index, descending: Bool, _ query: LabelQuery?, former: Bool,
    from: KeyBound? = nil, pages: Int = 4000
  ) throws(FuzzFinding) -> [[UInt8]]? {
    var keys: [[UInt8]] = []
    var page = KeyPage()
    var next = from ?? (descending ? .end : .start)
    let end: KeyBound = descending ? .start : .end
    for _ in 0..<pages {
      do {
        let isDone =
          if let query {
            try index.page(
              matching: query, from: next, upTo: end, descending: descending, limit: 50,
              includeFormer: former, into: &page)
          } else {
            try index.page(
              from: next, upTo: end, descending: descending, limit: 4000,
              includeDeleted: former, into: &page)
          }
        for i in 0..<page.count { keys.append([UInt8](copying: page.key(at: i))) }
        if isDone { return keys }
        next = page.resumption
      } catch { return nil }
    }
    // Keys out of order may lead a walk in circles; each page must end nevertheless.
    return nil
  }

  // MARK: Merging

  private static func merge(
    _ index: Index, _ disk: MemoryFileSystem, drops: Bool
  ) throws {
    for number in stride(from: 1, to: 60, by: 4) {
      let key = key(number)
      let set = (try? index.labelTable.intern([labels[number % 4], labels[1]])) ?? 0
      let slot = Slot(
        sequence: 1000 + UInt64(number), labelSet: number % 8 == 1 ? 0 : set,
        size: number % 8 == 1 ? .deleted : SizeClass(bytes: number * 9))
      _ = try? index.upsert(key.rawSpan, hash: index.hash(key.rawSpan), slot)
    }
    // Sequences of runs ascend.
    let sequence = max(2000, index.runs.sequence)
    // A run over the sorted run first, then one in the place of both.
    for taken in 0..<3 where taken != 1 {
      index.freeze()
      let file = try disk.open("/merged \(taken)", .create)
      let info = RunInfo(
        storeID: storeID, runID: 77, sequence: sequence,
        dropTombstonesThrough: drops ? 1100 : 0, keepFormerMembers: !drops)
      try RunWriter.write(index.mergeInput(taking: taken), to: file, info: info)
      guard let run = try? SortedRun(file: file) else {
        throw FuzzFinding("a sorted run that was written cannot be opened")
      }
      let key = key(2)
      _ = try? index.upsert(
        key.rawSpan, hash: index.hash(key.rawSpan),
        Slot(sequence: 3000, labelSet: 0, size: SizeClass(bytes: 5)))
      _ = try index.publish(run, taking: taken)
      try read(index)
    }
    let fresh = Index(runs: index.runs, seed: index.seed)
    guard try walk(fresh, descending: false, nil, former: true) != nil else {
      throw FuzzFinding("a sorted run that was written cannot be read")
    }
  }

  // MARK: Seeds

  static func seeds() -> [[UInt8]] {
    [
      run(keys: 0, isWhole: true), run(keys: 7, isWhole: true),
      run(keys: 45, isWhole: true), run(keys: 45, isWhole: false),
    ].compactMap { file in
      guard let file else { return nil }
      let page = ChecksumRepair.runHeaderBytes
      // All seeds have one chunk.
      return [1] + file.prefix(headerFields) + file[page...].dropLast(file.count > page ? 8 : 0)
    }
  }

  /// - Parameter isWhole: whether it stands for itself, else over another one.
  private static func run(keys: Int, isWhole: Bool) -> [UInt8]? {
    let disk = MemoryFileSystem()
    let index = Index(seed: seed)
    do {
      // The second round gives keys former labels, deletes and missing ids.
      for round in 0..<2 {
        for number in 0..<keys where round == 0 || number % 5 == 0 {
          let key = key(number)
          let deleted = round == 1 && number % 10 == 0
          let set = try index.labelTable.intern(
            Array(labels[(number + round) % 3..<(number % 2 == 0 ? 4 : 3)]))
          let slot = Slot(
            sequence: UInt64(1 + number + 100 * round), labelSet: deleted ? 0 : set,
            size: deleted ? .deleted : SizeClass(bytes: 20 + 30 * number))
          try index.upsert(key.rawSpan, hash: index.hash(key.rawSpan), slot)
        }
        index.freeze()
        let file = try disk.open("/\(round)", .create)
        try RunWriter.write(
          index.mergeInput(taking: isWhole ? 1 : 0), to: file,
          info: RunInfo(
            storeID: storeID, runID: UInt64(round) + 1, sequence: 200 + UInt64(round),
            userInfo: [1, 2, 3]))
        _ = try index.publish(try SortedRun(file: file), taking: isWhole ? min(round, 1) : 0)
      }
      let file = try disk.open("/1", .read)
      return try file.read(try file.length(), at: 0)
    } catch { return nil }
  }
}
