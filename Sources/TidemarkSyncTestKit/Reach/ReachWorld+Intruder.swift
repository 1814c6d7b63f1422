internal import Tidemark
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

extension ReachWorld {
  /// The names of the owner's that the intruder knows.
  private var known: ReachSecrets { twins[0].secrets }

  private var anyReplica: ReplicaID { pick(owner.replicas + intruder.replicas) }

  /// A key of anybody's.
  private var anyKey: [UInt8] {
    switch random.int(below: 4) {
    case 0: pick(known.keys)
    case 1: key("move")
    case 2: key("all")
    default: key("m")
    }
  }

  /// A key that the intruder may write to. A token for labels learns by writing whether a key is
  /// taken, which is said of it: so it writes to keys of its own and of both.
  private var keyToWrite: [UInt8] {
    let hasLabels = intruder.access.scope?.labels.isEmpty == false
    return hasLabels ? key(random.chance(0.5) ? "m" : "all") : anyKey
  }

  /// Content of the intruder's own, by its number.
  private func ownContent(_ number: Int) -> [UInt8] {
    var random = SeededGenerator(seed: 1_000 + UInt64(number))
    return random.bytes([20, 70_000, 280_000][number % 3])
  }

  /// The name of some content: the owner's, the same with another length, or its own.
  private var anyName: AttachmentReference {
    let name = pick(known.names)
    switch random.int(below: 4) {
    case 0: return SyncContent.name(of: ownContent(random.int(below: 9)))
    case 1:
      return AttachmentReference(
        sha256: name.sha256, length: max(0, name.length + pick([-1, 1, 1_000, 1 << 20])))
    default: return name
    }
  }

  /// A key and a content, which may belong together.
  private var anyPair: (key: [UInt8], name: AttachmentReference) {
    guard random.chance(0.5) else { return (anyKey, anyName) }
    let number = random.int(below: ReachSecrets.count)
    return (known.keys[number], known.names[number])
  }

  private var anyScope: SyncScope {
    switch random.int(below: 4) {
    case 0: SyncScope(labels: ["a"])
    case 1: SyncScope(keyPrefixes: ["a/", "m/"])
    case 2: SyncScope(labels: ["all"], keyPrefixes: ["move/"])
    default: .everything
    }
  }

  /// Makes a call of which both twins have to tell the same.
  func intrude() throws {
    let (name, request) = intrusion()
    let answers = try call(name, intruder.access) { _ in request }
    guard answers[0] == answers[1] else {
      throw BrokenPromise(
        "\(Self.text(request)) tells the twins apart: \(Self.text(answers[0])) and "
          + Self.text(answers[1]))
    }
    guard case .success(let answer) = answers[0] else { return }
    count(name, answer)
    guard case .pushRequest(let push) = request, case .pushAnswer(let verdicts) = answer,
      verdicts.mark.batchID == push.batchID
    else { return }
    for (change, verdict) in zip(push.changes, verdicts.mark.verdicts) where verdict.isTaken {
      if let name = change.content.attachment { lent.append((change.key, name)) }
    }
  }

  private func intrusion() -> (String, WireMessage) {
    switch random.int(below: 12) {
    case 0...2: return ("attach", .attachRequest(attach()))
    case 3...4:
      var (key, name) = anyPair
      if random.chance(0.3), let own = random.pick(lent) { (key, name) = own }
      let request = ContentRequest(
        replica: anyReplica, key: key, attachment: name,
        offset: random.int(below: 2) * AttachRequest.partBytes, limit: 1_000)
      return ("fetch", .fetchRequest(request))
    case 5...7: return ("push", .pushRequest(push()))
    case 8:
      return (
        "values",
        .valuesRequest(
          ValuesRequest(
            replica: anyReplica, keys: (0...random.int(below: 6)).map { _ in anyKey },
            takesBlobs: random.chance(0.5)))
      )
    case 9: return ("pull", .pullRequest(pull()))
    case 10:
      let path = random.bytes(random.int(below: 3))
      return (
        "digest",
        .digestRequest(DigestRequest(replica: anyReplica, scope: anyScope, paths: [path]))
      )
    default:
      guard random.chance(0.5) else {
        return (
          "hello",
          .helloRequest(
            HelloRequest(
              replica: anyReplica, cursor: pick(positions), hasResynced: random.chance(0.3),
              reads: random.chance(0.7)))
        )
      }
      var place = pick(positions)
      if place.offset > 2 { place.offset -= UInt64(random.int(below: 3)) }
      return (
        "fetch",
        .fetchRequest(
          ContentRequest(
            replica: anyReplica, key: anyKey, attachment: anyName, offset: 0, limit: 1_000,
            position: place))
      )
    }
  }

  /// Asks for what is there of a content, sends something in its place, or sends its own.
  private func attach() -> AttachRequest {
    let key = random.chance(0.6) ? key("m") : anyKey
    switch random.int(below: 3) {
    case 0:
      let pair = anyPair
      return AttachRequest(
        replica: anyReplica, key: random.chance(0.5) ? key : pair.key, attachment: pair.name,
        offset: 0, bytes: [])
    case 1:
      let name = anyName
      return AttachRequest(
        replica: anyReplica, key: key, attachment: name, offset: 0,
        bytes: random.bytes(min(name.length, AttachRequest.partBytes)))
    default:
      let content = ownContent(random.int(below: 9))
      return AttachRequest(
        replica: anyReplica, key: key, attachment: SyncContent.name(of: content), offset: 0,
        bytes: content)
    }
  }

  /// Names content that it has, or only knows the hash of.
  private func push() -> PushRequest {
    let changes = (0...random.int(below: 2)).map { _ in
      var content = SyncContent(value: random.bytes(4), labels: [pick(["m", "all", "a"])])
      let name = anyName
      switch random.int(below: 3) {
      case 0: content.attachment = name
      case 1 where name.length > SyncContent.mostInlineBytes:
        content.value = []
        content.blob = name
      default: break
      }
      let base = random.chance(0.5) ? pick(positions) : nil
      return change(keyToWrite, random.chance(0.8) ? content : nil, base: base)
    }
    var request = batch(of: anyReplica, changes)
    if random.chance(0.1), let number = numbers[request.replica] {
      // The same batch again, as after a lost answer, but with other keys.
      request.number = number
      request.batchID = batches[request.replica] ?? request.batchID
    }
    return request
  }

  private func pull() -> PullRequest {
    PullRequest(
      replica: anyReplica, after: random.chance(0.3) ? .beginning : pick(positions),
      scope: anyScope, limits: SyncLimits(changes: 1 + random.int(below: 40)),
      takesBlobs: random.chance(0.5), everyVersion: random.chance(0.3),
      ownOnly: random.chance(0.2))
  }

  /// Counts answers that tell something, so that a trial of nothing but refusals is noticed.
  private func count(_ name: String, _ answer: WireMessage) {
    let tells =
      switch answer {
      case .attachAnswer(let answer): answer.received > 0
      case .fetchAnswer(let answer): answer.bytes?.isEmpty == false
      case .pushAnswer(let answer): answer.mark.verdicts.contains { $0.isTaken }
      case .valuesAnswer(let answer): !answer.entries.isEmpty
      case .pullAnswer(let answer): !answer.entries.isEmpty
      case .digestAnswer(let answer): (answer.parts.first?.total.keys ?? 0) > 0
      default: true
      }
    if tells { report.count(name + ", told something") }
  }
}
