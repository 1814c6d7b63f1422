internal import Tidemark
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// The twins, and whoever calls them.
final class ReachWorld {
  /// Somebody with a token and two devices.
  struct Party {
    var access: SyncAccess
    var replicas: [ReplicaID]
    /// Begins the keys that are its own; they have it as their label as well.
    var name: String
  }

  let twins: [ReachTwin]
  let clock = ManualClock()
  let owner: Party
  let intruder: Party
  var random: SeededGenerator
  var report = SyncSimulationReport()
  /// How much of the content of each secret the twins have acknowledged; nil before the first part.
  var sent = [Int?](repeating: nil, count: ReachSecrets.count)
  /// Where secrets, and keys that everybody knows, were last put, as the owner was told.
  var places: [[UInt8]: FeedPosition] = [:]
  /// Where entries stand, whoever wrote them.
  private(set) var positions: [FeedPosition] = [.beginning]
  /// How far the batches of replicas have come.
  private(set) var numbers: [ReplicaID: UInt64] = [:]
  private(set) var batches: [ReplicaID: BatchID] = [:]
  private var sequence: UInt64 = 0
  /// Entries of the intruder's that have attachments.
  var lent: [(key: [UInt8], name: AttachmentReference)] = []

  init(seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    let reaches = [
      (SyncScope(keyPrefixes: ["a/", "move/", "all/"]), SyncScope(keyPrefixes: ["m/", "all/"])),
      (nil, SyncScope(keyPrefixes: ["m/", "all/"])),
      (SyncScope(labels: ["a", "all"]), SyncScope(labels: ["m", "all"])),
      (nil, SyncScope(labels: ["m", "all"])),
      (SyncScope(keyPrefixes: ["a/", "all/"]), SyncScope(labels: ["m", "all"])),
      (SyncScope(labels: ["a", "all"]), SyncScope(labels: ["all"], keyPrefixes: ["m/"])),
    ]
    let (wide, narrow) = reaches[Int(seed % UInt64(reaches.count))]
    func replicas(_ first: UInt8) -> [ReplicaID] {
      (0..<2).map { ReplicaID(padding: Array(repeating: first + $0, count: 16)) }
    }
    owner = Party(access: SyncAccess(to: wide), replicas: replicas(1), name: "a")
    intruder = Party(access: SyncAccess(to: narrow), replicas: replicas(8), name: "m")
    let clock = clock
    twins = try (0..<2).map { try ReachTwin(seed: seed, twin: $0, clock: clock) }
    for replica in owner.replicas + intruder.replicas {
      try call("hello", owner.access) { _ in .helloRequest(HelloRequest(replica: replica)) }
    }
  }

  /// Calls both twins.
  /// - Parameter message: what the owner says differs.
  /// - Returns: the twins' answers; an error counts as one.
  @discardableResult
  func call(
    _ name: String, _ access: SyncAccess, _ message: (ReachTwin) -> WireMessage
  ) throws -> [Result<WireMessage, PeerError>] {
    // So slowly that no upload counts as one that nobody goes on with.
    clock.advance(by: .milliseconds(Int64(random.int(below: 40))))
    let requests = twins.map(message)
    let answers = zip(twins, requests).map { twin, request in
      Result { () throws(PeerError) in try twin.handler.answer(request, access: access) }
    }
    for answer in answers {
      switch answer {
      case .success(let message): note(message, to: requests[0])
      case .failure(let error):
        guard ![.failed, .unavailable].contains(error.kind) else {
          throw BrokenPromise("\(Self.text(requests[0])) was answered with \(error)")
        }
      }
    }
    report.count(name)
    return answers
  }

  /// A message without most of its bytes.
  static func text(_ message: some Any) -> String { String("\(message)".prefix(600)) }

  /// Takes note of what callers could know.
  private func note(_ answer: WireMessage, to request: WireMessage) {
    if let place = answer.range?.headPosition { positions.append(place) }
    if positions.count > 200 { positions.removeFirst(100) }
    let (replica, mark): (ReplicaID, ReplicaMark)
    switch (request, answer) {
    case (.helloRequest(let request), .helloAnswer(let answer)):
      (replica, mark) = (request.replica, answer.mark)
    case (.pushRequest(let request), .pushAnswer(let answer)):
      (replica, mark) = (request.replica, answer.mark)
    default: return
    }
    numbers[replica] = mark.number
    batches[replica] = mark.batchID
  }

  /// A batch, nearly always the next one.
  func batch(of replica: ReplicaID, _ changes: [PushedChange]) -> PushRequest {
    let next = numbers[replica, default: 0] + 1
    return PushRequest(
      replica: replica, number: random.chance(0.95) ? next : next + 1,
      batchID: BatchID(random.next() | 1),
      previousBatchID: random.chance(0.5) ? batches[replica] : nil, changes: changes)
  }

  /// A change with the next sequence; all devices count together.
  func change(
    _ key: [UInt8], _ content: SyncContent?, base: FeedPosition? = nil
  ) -> PushedChange {
    sequence += 1
    return PushedChange(
      sequence: sequence, kind: content == nil ? .delete : .put, key: key,
      content: content ?? SyncContent(), base: base.map { .position($0) } ?? .absent,
      commitTime: UInt64(clock.now().milliseconds) << 16)
  }

  func pick<C: RandomAccessCollection>(_ values: C) -> C.Element {
    values[values.index(values.startIndex, offsetBy: random.int(below: values.count))]
  }
}

extension ReachWorld {
  /// A key that everybody may know.
  func key(_ prefix: String) -> [UInt8] {
    Array("\(prefix)/\(random.int(below: 12))".utf8)
  }

  /// The owner works with what is its own, and with what both reach.
  func ownerCalls() throws {
    let replica = pick(owner.replicas)
    switch random.int(below: 10) {
    case 0...3: try upload(random.int(below: ReachSecrets.count), replica)
    case 4...6: try putSecret(random.int(below: ReachSecrets.count), replica)
    case 7: try deleteSecret(random.int(below: ReachSecrets.count), replica)
    case 8: try putShared(replica)
    default: try move(replica)
    }
  }

  /// Sends the next part of a content. No part that was acknowledged gets lost.
  private func upload(_ number: Int, _ replica: ReplicaID) throws {
    // One device sends it all.
    let replica = owner.replicas[number % owner.replicas.count]
    let before = sent[number] ?? 0
    let answers = try call("the owner's attach", owner.access) { twin in
      let content = twin.secrets.contents[number]
      let start = min(before, content.count)
      let end = min(content.count, start + AttachRequest.partBytes)
      return .attachRequest(
        AttachRequest(
          replica: replica, key: twin.secrets.keys[number], attachment: twin.secrets.names[number],
          offset: start, bytes: Array(content[start..<end])))
    }
    for (twin, answer) in zip(twins, answers) {
      guard case .success(.attachAnswer(let answer)) = answer else {
        throw BrokenPromise("the owner cannot go on with an upload: \(answer)")
      }
      let length = twin.secrets.contents[number].count
      guard answer.received >= min(before, length) else {
        throw BrokenPromise("the owner's content \(number) was there up to \(before): \(answer)")
      }
      if answer.received == length { report.count("contents whole") }
      sent[number] = answer.received
    }
  }

  private func isWhole(_ number: Int) -> Bool {
    sent[number].map { $0 >= twins[0].secrets.contents[number].count } ?? false
  }

  private func putSecret(_ number: Int, _ replica: ReplicaID) throws {
    let replica = owner.replicas[number % owner.replicas.count]
    let isNamed = isWhole(number)
    let isValue = random.chance(0.5)
    let changes = twins.map { twin in
      var content = SyncContent(value: twin.secrets.keys[number] + [1], labels: ["a"])
      let name = twin.secrets.names[number]
      if isNamed, isValue, name.length > SyncContent.mostInlineBytes {
        content.value = []
        content.blob = name
      } else if isNamed {
        content.attachment = name
      }
      let key = twin.secrets.keys[number]
      return change(key, content, base: places[key])
    }
    try push(replica, changes)
    if isNamed { sent[number] = nil }
  }

  private func deleteSecret(_ number: Int, _ replica: ReplicaID) throws {
    try push(
      replica,
      twins.map { twin in
        let key = twin.secrets.keys[number]
        return change(key, nil, base: places[key])
      })
    // Its content may have been there because the entry named it.
    sent[number] = nil
  }

  private func putShared(_ replica: ReplicaID) throws {
    let key = key("all")
    let change = change(
      key, SyncContent(value: random.bytes(8), labels: ["all"]), base: places[key])
    try push(replica, twins.map { _ in change })
  }

  /// Brings a key into the reach of labels and out of it again; what it holds there differs.
  private func move(_ replica: ReplicaID) throws {
    let key = key("move")
    let isOut = random.chance(0.5)
    let open = random.bytes(8)
    try push(
      replica,
      twins.map { twin in
        let value = isOut ? twin.secrets.keys[0] : open
        return change(
          key, SyncContent(value: value, labels: isOut ? ["a"] : ["all"]), base: places[key])
      })
  }

  private func push(_ replica: ReplicaID, _ changes: [PushedChange]) throws {
    var batches = changes.map { self.batch(of: replica, [$0]) }
    batches[1].number = batches[0].number
    batches[1].batchID = batches[0].batchID
    batches[1].previousBatchID = batches[0].previousBatchID
    batches[1].changes[0].sequence = batches[0].changes[0].sequence
    var rest = batches[...]
    let answers = try call("the owner's push", owner.access) { _ in
      .pushRequest(rest.removeFirst())
    }
    for (change, answer) in zip(changes, answers) {
      guard case .success(.pushAnswer(let answer)) = answer else { continue }
      switch answer.mark.verdicts.first {
      case .applied(let place)?, .duplicate(let place)?, .conflict(let place)?:
        places[change.key] = place
      default: break
      }
    }
    if case .success(.pushAnswer(let answer))? = answers.first, answer.mark.verdicts.first != nil {
      report.count("the owner's changes judged")
    }
  }
}
