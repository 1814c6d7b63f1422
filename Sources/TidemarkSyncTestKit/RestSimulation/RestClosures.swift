internal import Tidemark
internal import TidemarkEngine
internal import TidemarkREST
internal import TidemarkSync
internal import TidemarkSyncProtocol
internal import TidemarkTestKit

/// The closures of a program for a back end, as the article *Writing a peer* has them.
struct RestClosures: Sendable {
  private let back: SimulatedBackEnd
  private let traits: RestTraits
  /// The aliases of the store, as `Store.alias(forKey:at:)` gives them.
  private let names: Lock<KnownAliases?>
  /// The versions of records that answers have told, in this process.
  private let versions = Lock<[String: Int]>([:])

  private let sender: RestSender

  init(
    _ back: SimulatedBackEnd, _ traits: RestTraits, _ names: Lock<KnownAliases?>,
    _ sender: RestSender
  ) {
    (self.back, self.traits, self.names, self.sender) = (back, traits, names, sender)
  }

  func peer(batch: Int, _ clock: ManualClock) -> RequestPeer {
    let read: RequestPeer.Read = { key, alias in try self.read(key, alias) }
    return RequestPeer(
      named: "https://api.example.org",
      options: RequestPeer.Options(changesPerBatch: batch, listsEverything: true),
      clock: clock, send: { try self.send($0) }, fetch: { try self.fetch($0) },
      read: traits.contains(.canRead) ? read : nil,
      newKey: { alias, _ in traits.contains(.givesIDs) ? Key("note/\(alias)") : Key(alias.bytes) })
  }

  /// An answer of the back end itself.
  private func checked(_ answer: RestAnswer) throws -> RestAnswer {
    guard answer.isOfService || PlantedSyncBug.isOn(.boxBelieved) else {
      throw PeerError(.unavailable, "somebody else has answered \(answer.status)")
    }
    return answer
  }

  private func send(_ change: RequestChange) throws -> RequestOutcome {
    let givesIDs = traits.contains(.givesIDs)
    let id = givesIDs ? change.alias?.text : change.key.text
    var request = RestRequest(
      method: change.kind == .delete ? .delete : id == nil ? .post : .put, id: id ?? "",
      body: String(decoding: change.content.value, as: UTF8.self),
      idempotencyKey: change.idempotencyKey, key: change.key.text, sender: sender)
    if let parent = request.body.split(separator: " in ", maxSplits: 1).dropFirst().first {
      let name = String(parent)
      request.parent =
        givesIDs ? names.withLock { $0?.alias(ofKey: Array(name.utf8))?.text } : name
    }
    guard let id = givesIDs && change.kind == .delete ? id : id ?? "" else { return .duplicate }
    request.ifMatch = versions.withLock { $0[id] }
    let answer = try checked(try back.answer(request))
    if let version = answer.version {
      versions.withLock { $0[answer.id.isEmpty ? id : answer.id] = version }
    }
    switch answer.status {
    case 201: return .appliedAs(KeyAlias(answer.id))
    case 200..<300: return .applied
    case 404: return change.kind == .put ? .conflict(.absent) : .duplicate
    case 409:
      if let body = answer.body { return .conflict(Self.state(body)) }
      return .conflict(answer.version == 0 ? .absent : nil)
    case 422: return .rejected(SyncRejection(code: "invalid", message: answer.body ?? ""))
    case 429: return .retryLater(after: .seconds(90))
    default: throw PeerError(.unavailable, "status \(answer.status)")
    }
  }

  private func fetch(_ token: String?) throws -> RequestPage {
    let answer = try checked(try back.list(token))
    if answer.status == 410 { throw PeerError(.cursorGone, "the token has expired") }
    guard answer.status == 200 else {
      throw PeerError(.unavailable, "status \(answer.status)")
    }
    let changes = answer.changes.map { change in
      versions.withLock { $0[change.id] = change.body == nil ? 0 : change.number }
      let state = Self.state(change.body)
      let key = traits.contains(.listsKeys) ? change.idempotencyKey : nil
      return traits.contains(.givesIDs)
        ? RequestPage.Change(alias: KeyAlias(change.id), state: state, idempotencyKey: key)
        : RequestPage.Change(key: change.id, state: state, idempotencyKey: key)
    }
    return RequestPage(changes: changes, token: answer.token, hasMore: answer.hasMore)
  }

  private func read(_ key: Key, _ alias: KeyAlias?) throws -> RequestState {
    guard let id = traits.contains(.givesIDs) ? alias?.text : key.text else { return .absent }
    let answer = try checked(try back.answer(RestRequest(method: .get, id: id)))
    guard answer.status == 200 || answer.status == 404 else {
      throw PeerError(.unavailable, "status \(answer.status)")
    }
    versions.withLock { $0[id] = answer.version ?? 0 }
    return Self.state(answer.body)
  }

  private static func state(_ body: String?) -> RequestState {
    body.map { .value(SyncContent(value: Array($0.utf8))) } ?? .absent
  }
}
