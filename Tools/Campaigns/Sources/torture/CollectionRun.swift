import ArgumentParser
import Tidemark

/// Brings a collection of real records from version to version, by a real process that is killed at
/// random moments, and looks whether it goes on where it was and shows whole versions only.
struct CollectionRun {
  var directory: String
  var seed: UInt64
  /// How often the process is killed on the way to each version.
  var kills: Int
  var records: String
  var updates: String

  private static let prefix = "items/"

  func run() async throws {
    let data = try await CollectionData(records: records, updates: updates)
    let path = "\(directory)/torture-collection-\(seed)"
    Directories.remove(path)
    var chance = seed
    for number in 1..<data.versions.count {
      var told = 0
      let expected = data.difference(to: number)
      let fetched = expected.added + expected.refetched
      // Without anything to fetch a sync is one commit.
      for _ in 0..<(fetched > 0 ? kills : 0) {
        chance = chance &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        told = try kill(path, number, after: Int(chance >> 33) % max(1, fetched / kills), told)
        try await check(path, data, number - 1...number)
      }
      try await finish(path, data, number, told: told)
    }
    Directories.remove(path)
    Output.line("all versions were whole, and nothing was fetched twice that was kept")
  }

  private func open(_ path: String) async throws -> (Store, Cache<[UInt8]>) {
    let store = try await Store.open(at: path)
    return (store, try store.cache(prefix: Self.prefix, policy: .manifest))
  }

  // MARK: The process

  /// Lets a process sync, and kills it once it has fetched so many items more.
  /// - Returns: how many items it said to have found and fetched.
  private func kill(_ path: String, _ number: Int, after count: Int, _ told: Int) throws -> Int {
    let child = try ChildProcess([
      "collection-child", "--directory", path, "--records", records, "--updates", updates,
      "--seed", "\(number)",
    ])
    defer { child.close() }
    var words = 0
    var last = 0
    while words <= count, let word = child.next() {
      // The first word is what it has found of the process before: all but what was under way.
      if words == 0, Int(word) < told - Self.mostLost {
        throw failure("\(word) items are left of \(told)")
      }
      last = Int(word)
      words += 1
    }
    child.kill()
    while let word = child.next() { last = Int(word) }
    return last
  }

  /// Items that a kill may take: those of one commit, and those that are fetched at a time.
  private static let mostLost = 64 + 8

  /// The process itself.
  static func child(
    _ path: String, number: Int, records: String, updates: String
  ) async throws {
    let data = try await CollectionData(records: records, updates: updates)
    let store = try await Store.open(at: path)
    let cache = try store.cache(prefix: prefix, policy: .manifest)
    var options = MirrorOptions()
    options.progress = { progress in try? Said.word(UInt64(progress.fetched)) }
    try await cache.sync(with: CollectionServer(data, number), options: options)
    try await store.close()
  }

  // MARK: Checks

  /// The version that a reader sees, which is one of these and whole.
  @discardableResult
  private func check(
    _ path: String, _ data: CollectionData, _ numbers: ClosedRange<Int>
  ) async throws -> Int {
    let (store, cache) = try await open(path)
    let view = try cache.view()
    let keys = try view.keys()
    let number = numbers.first { number in
      let version = data.versions[number]
      return keys.count == version.count
        && keys.allSatisfy { key in
          guard let item = version[key], let value = try? view.value(forKey: key) else {
            return false
          }
          return item.value == value
        }
    }
    try await store.close()
    guard let number else { throw failure("\(keys.count) items are no version") }
    return number
  }

  /// Brings the version here without further kills, beside a reader, and compares the counts.
  private func finish(
    _ path: String, _ data: CollectionData, _ number: Int, told: Int
  ) async throws {
    let isThere = try await check(path, data, number - 1...number) == number
    let (store, cache) = try await open(path)
    let reader = Task { try read(cache, data, number) }
    let server = CollectionServer(data, number)
    let outcome = try await cache.sync(with: server)
    reader.cancel()
    let views = try await reader.value
    let expected = data.difference(to: number)
    let counts = (outcome.added, outcome.refetched, outcome.deleted)
    Output.line(
      "version \(number): \(outcome.added) added, \(outcome.refetched) refetched, "
        + "\(outcome.deleted) deleted, \(outcome.resumed) of them fetched before the kills, "
        + "\(views) views; expected \(expected.added), \(expected.refetched), "
        + "\(expected.deleted)")
    guard isThere ? counts == (0, 0, 0) : counts == expected else {
      throw failure("the sync has done something else")
    }
    guard await server.fetches == outcome.added + outcome.refetched - outcome.resumed,
      isThere || outcome.resumed >= told - Self.mostLost
    else { throw failure("\(await server.fetches) items were fetched") }
    let again = CollectionServer(data, number)
    guard try await cache.sync(with: again).kind == .unchanged, await again.hashes == 1,
      await again.lists + again.fetches == 0
    else { throw failure("a second sync has done more than one comparison") }
    try await store.close()
    try await check(path, data, number...number)
  }

  /// Takes views until it is called off, each of which must be of one version.
  /// - Returns: how many there were.
  private func read(_ cache: Cache<[UInt8]>, _ data: CollectionData, _ number: Int) throws -> Int {
    let (old, new) = (data.versions[number - 1], data.versions[number])
    // Items that tell the two apart.
    let keys = Set(old.keys).union(new.keys).filter { old[$0]?.hash != new[$0]?.hash }
    let telling = keys.sorted().enumerated().filter { $0.offset % 97 == 0 }.map(\.element)
    var views = 0
    repeat {
      let view = try cache.view()
      var isOld = true
      var isNew = true
      for key in telling {
        let value = try view.value(forKey: key)
        isOld = isOld && value == old[key]?.value
        isNew = isNew && value == new[key]?.value
      }
      guard isOld || isNew else { throw failure("a reader has met a mixture") }
      views += 1
    } while !Task.isCancelled
    return views
  }

  private func failure(_ text: String) -> any Error {
    Output.line("FAILED: \(text); seed \(seed)")
    return ExitCode.failure
  }
}
