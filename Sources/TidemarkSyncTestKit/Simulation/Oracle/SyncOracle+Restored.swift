internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// The content that a restored server has lost at a key, though somebody still has it.
struct Outdated {
  /// The content that the server holds again.
  var kept: Content
  /// The content that it had held since.
  var lost: Content
  /// The devices that hold what was lost.
  var keepers: Set<Int>
  /// Devices among them that have never heard of what the server holds again.
  var blind: Set<Int>
}

/// The knowledge of others that is newer than that of a server that was restored.
extension SyncOracle {
  /// Another store stands in the server's place.
  func serverReplaced(by copy: FeedLine, _ devices: [SimulatedDevice]) {
    outdated = [:]
    let isScoped = devices.contains { !$0.session.scope.isEverything || !$0.scope.isEverything }
    // Nobody can bring back what is out of reach; once it is in reach it is as good as new.
    let isLimited = Set(devices.filter { $0.access.reach != 0 }.map(\.index))
    for (key, lost) in line.state where !isScoped {
      let kept = copy.state[key] ?? .deleted
      // A copy may also be ahead of what another one was made to hold.
      guard kept != lost, !mayReturn(kept), !(copy.shown[key]?.contains(lost) ?? false) else {
        continue
      }
      // Nobody knows better if the two belong to different lives of the feed, or if it was the
      // other way round in another one.
      guard kept == .deleted || isFollowed(kept, by: lost, key), !isFollowed(lost, by: kept, key)
      else { continue }
      let holders = books.indices.filter { books[$0].newest[key] != nil }
      let keepers = holders.filter {
        !isLimited.contains($0)
          && books[$0].newest[key].map { $0.content == lost && !$0.isEvicted } ?? false
      }
      let isDeletedSomewhere = holders.contains { books[$0].newest[key]?.content == .deleted }
      guard !keepers.isEmpty, kept != .deleted || !isDeletedSomewhere else { continue }
      let blind = keepers.filter { !books[$0].knows(key, kept) }
      outdated[key] = Outdated(
        kept: kept, lost: lost, keepers: Set(keepers), blind: Set(blind))
    }
    timesReplaced += 1
    line = copy
  }

  /// An entry stands in the feed behind all that its key has shown there.
  func noteOrder(_ entry: ObservedEntry) {
    for content in line.shown[entry.key] ?? [] where content != entry.content {
      followers[entry.key, default: [:]][content, default: []].insert(entry.content)
    }
  }

  private func isFollowed(_ content: Content, by other: Content, _ key: [UInt8]) -> Bool {
    followers[key]?[content]?.contains(other) ?? false
  }

  /// A program has written to a key.
  func noteWrite(_ key: [UInt8]) { outdated[key] = nil }

  /// A policy may have let a write win over what its writer had never heard of, or what it was made
  /// upon may have gone with the writer's history, or may be forgotten since the server had yet
  /// another past meanwhile. It is pending again once the server has lost it, so that the writer's
  /// resolver is asked, who has the last word; of what was brought back the time decides.
  func noteGivenWay(
    _ former: Seen?, to seen: Seen, _ key: [UInt8], _ answers: [ResolverAnswer], by device: Int
  ) {
    guard let former, let rule = outdated[key], former.isOwn, former.content == rule.lost,
      seen.content == rule.kept || timesReplaced > 1,
      rule.blind.contains(device) || hasDroppedHistory || timesReplaced > 1,
      former.isBroughtBack || answers.contains(where: { $0.gives(way: former, to: seen, key) })
    else { return }
    noLonger(device, keeps: key)
  }

  /// A resolver was asked, and has the last word: its device had written what the server was
  /// restored to, and may not have heard what was made of that out of its reach.
  func noteKept(by answer: ResolverAnswer) {
    guard let rule = outdated[answer.key], case .local = answer.resolution else { return }
    let local = Content(answer.local)
    // Others may know that what the server was restored to came after the device's own.
    guard local == rule.kept || isFollowed(local, by: rule.kept, answer.key) else { return }
    outdated[answer.key] = nil
  }

  /// A device need not bring back what the server has lost.
  func noLonger(_ device: Int, keeps key: [UInt8]) {
    outdated[key]?.keepers.remove(device)
    if outdated[key]?.keepers.isEmpty ?? false { outdated[key] = nil }
  }

  func checkNothingOutdated() throws {
    for (key, rule) in outdated where (line.state[key] ?? .deleted) == rule.kept {
      // A delete that the server had confirmed goes with a device's history.
      guard !(hasDroppedHistory && rule.lost == .deleted), !mayReturn(rule.kept) else { continue }
      throw BrokenPromise("\(name(key)) is what a restored server had, though others knew better")
    }
  }
}
