import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("Caches: space on the disk")
struct CacheSpaceTests {
  let machine = Machine()

  enum Content: CaseIterable {
    case small, medium, large, attachments, smallAttachments

    var bytes: Int {
      switch self {
      case .small: 200
      case .medium: 5_000
      case .large, .attachments: 100_000
      case .smallAttachments: 3_000
      }
    }

    var isAttached: Bool { self == .attachments || self == .smallAttachments }
  }

  enum Ending: CaseIterable {
    case close, kill
  }

  private func content(_ number: Int, _ count: Int) -> [UInt8] {
    var chance = SeededGenerator(seed: UInt64(number))
    return chance.bytes(count)
  }

  private func put(
    _ number: Int, _ content: Content, to cache: Cache<[UInt8]>
  ) async throws {
    let bytes = self.content(number, content.bytes)
    let key = "\(number % 100_000)"
    guard content.isAttached else { return try await cache.put(key, bytes) }
    let staged = try await cache.store.attach(bytes)
    try await cache.put(key, Array("{}".utf8), attachment: staged)
  }

  @Test(
    "over launches a bounded cache stays within its bound, a quarter more and 8 MiB",
    arguments: Content.allCases, Ending.allCases)
  func launches(content: Content, ending: Ending) async throws {
    let bound = 2 << 20
    var number = 0
    var most = 0
    for _ in 0..<5 {
      let store = try machine.open()
      let cache = try store.cache(
        prefix: "a/", policy: CachePolicy(capacity: nil, bytes: bound))
      for _ in 0..<(min(1_000, 3 * bound / 2 / content.bytes)) {
        try await put(number, content, to: cache)
        number += 1
        if number % 8 == 0 { machine.clock.advance(by: .milliseconds(100)) }
        most = max(most, machine.disk.usedBytes)
      }
      switch ending {
      case .close: try await store.close()
      case .kill:
        machine.disk.kill()
        machine.disk.restart()
      }
    }
    #expect(most <= bound + bound / 4 + (8 << 20), "\(content), \(ending): \(most >> 10) KiB")
  }

  /// A store on a disk of 3 MiB, with a cache of 2 MiB.
  private func smallDisk() throws -> (Store, Cache<[UInt8]>) {
    let store = try machine.open()
    machine.disk.capacity = 3 << 20
    let policy = CachePolicy(capacity: nil, bytes: 2 << 20)
    return (store, try store.cache(prefix: "image/", policy: policy))
  }

  @Test(
    "on a disk hardly larger than its cache no content is refused", arguments: [20_000, 100_000])
  func smallDisk(length: Int) async throws {
    let (store, cache) = try smallDisk()
    for number in 0..<(4_000_000 / length) {
      let staged = try await store.attach(content(number, length))
      try await cache.put("\(number)", Array("{}".utf8), attachment: staged)
    }
    #expect(cache.counts.evictions > 0)
    try await store.close()
  }

  @Test("a full disk takes what caches would give up next before content is refused")
  func evictsForRoom() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "image/", policy: CachePolicy(capacity: nil))
    for number in 0..<20 {
      let staged = try await store.attach(content(number, 100_000))
      try await cache.put("\(number)", Array("{}".utf8), attachment: staged)
    }
    machine.disk.capacity = machine.disk.usedBytes + 150_000
    for number in 0..<10 {
      let staged = try await store.attach(content(100 + number, 90_000 + number))
      try await store.put("mine/\(number)", "1", options: PutOptions(attachment: staged))
    }
    #expect(try cache.entry(forKey: "19") != nil && cache.entry(forKey: "0") == nil)
    let error = await #expect(throws: TidemarkError.self) {
      _ = try await store.attach(content(1_000, 4_000_000))
    }
    #expect(error?.code == .noSpace)
    machine.disk.capacity = nil
    try await store.close()
  }

  @Test(
    "a full disk takes nothing from caches while a view keeps what they would give up",
    arguments: [false, true], [3_000, 60_000, 200_000])
  func viewsKeepRoom(isAttached: Bool, length: Int) async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "image/", policy: CachePolicy(capacity: nil))
    let count = 8_000_000 / length
    for number in 0..<count {
      let bytes = content(number, length)
      if isAttached {
        try await cache.put("\(number)", [1], attachment: try await store.attach(bytes))
      } else {
        try await cache.put("\(number)", bytes)
      }
    }
    try await store.flush()
    machine.disk.capacity = machine.disk.usedBytes + 150_000
    var view: StoreView? = try store.view()
    for _ in 0..<3 {
      let error = await #expect(throws: TidemarkError.self) {
        try await store.put("mine", content(9_999, 2_000_000))
      }
      #expect(error?.code == .noSpace)
    }
    #expect(try cache.count == count && cache.counts.evictions == 0)
    #expect(try view?.contains("image/0") == true)
    view = nil
    try await store.put("mine", content(9_999, 2_000_000))
    #expect(try cache.count < count)
    machine.disk.capacity = nil
    try await store.close()
  }

  @Test(
    "on a disk hardly larger than its cache no value of the log is refused",
    arguments: [2_000, 8_000, 20_000, 100_000])
  func smallDiskOfValues(length: Int) async throws {
    let (store, cache) = try smallDisk()
    for number in 0..<(5_000_000 / length) {
      try await cache.put("\(number)", content(number, length))
    }
    #expect(cache.counts.evictions > 0)
    try await store.close()
  }

  @Test(
    "on a disk hardly larger than its cache values of random lengths are stored in the log",
    arguments: [3_000, 30_000, 150_000, 300_000], UInt64(1)...2)
  func smallDiskOfRuns(longest: Int, seed: UInt64) async throws {
    var chance = SeededGenerator(seed: seed)
    let (store, cache) = try smallDisk()
    for number in 0..<max(300, 15_000_000 / longest) {
      let length = chance.int(in: 1_000...longest)
      try await cache.put("\(number)", content(number, length))
      #expect(try cache.contains("\(number)"))
    }
    try await store.close()
  }

  @Test(
    "on a disk hardly larger than its cache recently used values stay, and plain puts succeed",
    arguments: [2_000, 60_000], UInt64(1)...2)
  func smallDiskInUse(longest: Int, seed: UInt64) async throws {
    var chance = SeededGenerator(seed: seed)
    let (store, cache) = try smallDisk()
    var lengths: [String: Int] = [:]
    for number in 0..<(10_000_000 / longest) {
      let length = chance.int(in: 500...longest)
      try await cache.put("\(number)", content(number, length))
      lengths["\(number)"] = length
      if number % 40 == 0 { try await store.put("mine", content(number, 300)) }
      for _ in 0..<3 { _ = try cache.value(forKey: "\(chance.int(in: 0...number))") }
    }
    let kept = try lengths.filter { try cache.contains($0.key) }.values.reduce(0, +)
    #expect(kept > 1 << 20, "\(kept >> 10) KiB are kept")
    try await store.close()
  }

  /// The ways to fill a disk further that is full of a cache's values.
  enum Write: CaseIterable {
    case put, small, cached, batch, attachment
  }

  @Test(
    "a disk full of cached values of the log gives them up before anything is refused",
    arguments: Write.allCases, [60_000, 3_000, 200_000])
  func evictsValuesForRoom(write: Write, length: Int) async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "image/", policy: CachePolicy(capacity: nil))
    for number in 0..<(8_000_000 / length) {
      try await cache.put("\(number)", content(number, length))
    }
    try await store.flush()
    machine.disk.capacity = machine.disk.usedBytes + 150_000
    for number in 0..<40 {
      let bytes = content(1_000 + number, write == .small ? 900 : 30_000 + number)
      switch write {
      case .put, .small: try await store.put("mine/\(number)", bytes)
      case .cached: try await cache.put("new/\(number)", bytes)
      case .batch:
        try await store.write { batch in
          for part in 0..<4 { try batch.put("mine/\(number)/\(part)", bytes, labels: ["x"]) }
        }
      case .attachment:
        let staged = try await store.attach(bytes)
        try await store.put("mine/\(number)", "1", options: PutOptions(attachment: staged))
      }
    }
    #expect(try cache.contains("0") == (write == .small))
    let (evictions, count) = (cache.counts.evictions, try cache.count)
    let error = await #expect(throws: TidemarkError.self) {
      try await store.put("large", content(9_999, 20_000_000))
    }
    #expect(error?.code == .noSpace)
    // All that the cache has would not be enough.
    #expect(try cache.counts.evictions == evictions && cache.count == count)
    machine.disk.capacity = nil
    try await store.close()
    #expect(
      try await Store.verify(
        at: "store", configuration: machine.configuration()
      ).findings.isEmpty)
  }

  @Test(
    "after removeAll no byte of a cache's keys, values and attachments is on the disk",
    arguments: [true, false])
  func removeAll(isReopened: Bool) async throws {
    var store = try machine.open()
    var cache = try store.cache(prefix: "user-a/", policy: CachePolicy(capacity: 40))
    try await store.put("note", "mine")
    try await store.cache(prefix: "other/").put("page", Array("kept".utf8))
    func fill() async throws {
      for number in 0..<60 {
        let text = Array("secret-value \(number)".utf8)
        let staged = try await store.attach(text + content(number, 2_000))
        try await cache.put(
          "secret-key-\(number)", text, labels: ["secret-label"], hash: Array("secret-hash".utf8),
          attachment: number % 3 == 0 ? staged : nil)
      }
    }
    try await fill()
    try await store.snapshot()
    try await fill()
    if isReopened {
      try await store.close()
      store = try machine.open()
      cache = try store.cache(prefix: "user-a/", policy: CachePolicy(capacity: 40))
    }
    try await cache.removeAll()
    let telling = machine.disk.files().filter { path in
      String(decoding: machine.disk.contents(of: path) ?? [], as: UTF8.self).contains("secret")
    }
    #expect(telling == [])
    #expect(try store.attachmentUsage().count == 0)
    #expect(try store.text(forKey: "note") == "mine")
    #expect(try store.text(forKey: "other/page") == "kept")
    try await store.close()
  }

  @Test("content that is missing is told apart from a key without any and from content elsewhere")
  func missing() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "c/")
    let names = ["mine", "released", "c/cached"]
    var references: [AttachmentReference] = []
    for name in names {
      let staged = try await store.attach(Array(name.utf8))
      references.append(staged.reference)
      if name.hasPrefix("c/") {
        try await cache.put("cached", [1], attachment: staged)
      } else {
        try await store.put(Key(name), "1", options: PutOptions(attachment: staged))
      }
    }
    try await store.put("none", "1")
    try await store.releaseAttachment(references[1])
    for name in names + ["none", "absent"] { _ = try store.attachment(forKey: Key(name)) }
    for index in [0, 2] { try machine.disk.remove("store/attachments/\(references[index])") }
    #expect(code { _ = try store.attachment(forKey: "mine") } == .damaged)
    #expect(code { _ = try store.attachment(forKey: "c/cached") } == .damaged)
    #expect(code { _ = try cache.attachment(forKey: "cached") } == .damaged)
    for name in ["released", "none", "absent"] {
      #expect(try store.attachment(forKey: Key(name)) == nil)
    }
    #expect(try cache.attachment(forKey: "absent") == nil)
    try await store.close()
  }
}
