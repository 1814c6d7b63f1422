/// Everything on a simulated disk, durable or not. Copies share pages until one of them changes.
struct DiskImage: Sendable {
  static let root = 0
  /// Larger files are refused with `EFBIG`.
  static let maximumFileBytes = 1 << 36

  var files: [Int: FileNode] = [:]
  var directories: [Int: DirectoryNode] = [root: DirectoryNode()]
  private var nextNode = 1
  private var stamp = 0
  /// How often the machine was started.
  private(set) var boots = 1
  /// Tells this disk's boots from those of others.
  let identity: UInt64

  init(identity: UInt64) { self.identity = identity }

  /// A number for the next change, greater than all before.
  mutating func nextStamp() -> Int {
    stamp += 1
    return stamp
  }

  // MARK: Names

  /// The parts of a path; absolute and relative paths mean the same here.
  static func parts(_ path: String) -> [String] {
    var parts: [String] = []
    // By bytes: this runs with every call, and a slash is no part of another character.
    for bytes in path.utf8.split(separator: UInt8(ascii: "/")) {
      let part = String(Substring(bytes))
      if part == ".." { _ = parts.popLast() } else if part != "." { parts.append(part) }
    }
    return parts
  }

  /// The node at a path.
  func node(at path: String) throws(SimulatedErrno) -> Int { try node(at: Self.parts(path)) }

  private func node(at parts: [String]) throws(SimulatedErrno) -> Int {
    var node = Self.root
    for part in parts {
      guard let directory = directories[node] else { throw .ENOTDIR }
      guard let next = directory.visible[part] else { throw .ENOENT }
      node = next
    }
    return node
  }

  /// The file at a path.
  func file(at path: String) throws(SimulatedErrno) -> Int {
    let node = try node(at: path)
    guard files[node] != nil else { throw .EISDIR }
    return node
  }

  /// The directory that a path's last part stands in or would stand in.
  func parent(of path: String) throws(SimulatedErrno) -> (directory: Int, name: String) {
    var parts = Self.parts(path)
    guard let name = parts.popLast() else { throw .EEXIST }
    guard name.utf8.count <= 255, !name.utf8.contains(0) else { throw .EINVAL }
    let directory = try node(at: parts)
    guard directories[directory] != nil else { throw .ENOTDIR }
    return (directory, name)
  }

  mutating func createFile(at path: String) throws(SimulatedErrno) -> Int {
    let place = try freePlace(path)
    files[nextNode] = FileNode()
    return link(place)
  }

  mutating func createDirectory(at path: String) throws(SimulatedErrno) {
    let place = try freePlace(path)
    directories[nextNode] = DirectoryNode()
    _ = link(place)
  }

  private func freePlace(_ path: String) throws(SimulatedErrno) -> (directory: Int, name: String) {
    let place = try parent(of: path)
    guard directories[place.directory]?.visible[place.name] == nil else { throw .EEXIST }
    return place
  }

  private mutating func link(_ place: (directory: Int, name: String)) -> Int {
    let node = nextNode
    nextNode += 1
    let stamp = nextStamp()
    directories[place.directory]?.set(place.name, to: node, stamp: stamp)
    return node
  }

  mutating func remove(at path: String) throws(SimulatedErrno) {
    let place = try parent(of: path)
    guard let node = directories[place.directory]?.visible[place.name] else { throw .ENOENT }
    if let directory = directories[node], !directory.visible.isEmpty { throw .ENOTEMPTY }
    let stamp = nextStamp()
    directories[place.directory]?.set(place.name, to: nil, stamp: stamp)
  }

  /// Gives a file another name. After a power cut either name may be there, both or none: worse
  /// than any file system that is in use, so that nobody relies on more than a synced directory.
  mutating func rename(_ path: String, to newPath: String) throws(SimulatedErrno) {
    let (old, new) = (try parent(of: path), try parent(of: newPath))
    guard let node = directories[old.directory]?.visible[old.name] else { throw .ENOENT }
    guard files[node] != nil else { throw .EISDIR }
    if let other = directories[new.directory]?.visible[new.name] {
      guard files[other] != nil else { throw .EISDIR }
      guard other != node else { return }
    }
    let stamp = nextStamp()
    directories[new.directory]?.set(new.name, to: node, stamp: stamp)
    let next = nextStamp()
    directories[old.directory]?.set(old.name, to: nil, stamp: next)
  }

  /// All files by path, in the byte order of the paths.
  func paths() -> [(path: String, node: Int)] {
    var result: [(path: String, node: Int)] = []
    var waiting = [(path: "", node: Self.root)]
    while let (path, node) = waiting.popLast() {
      guard let directory = directories[node] else { continue }
      for (name, child) in directory.visible {
        let place = path.isEmpty ? name : path + "/" + name
        if directories[child] != nil {
          waiting.append((place, child))
        } else {
          result.append((place, child))
        }
      }
    }
    return result.sorted { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
  }

  // MARK: Power

  /// The stamps of all changes that were not synced, ascending.
  private var unsyncedStamps: [Int] {
    var stamps: [Int] = []
    for directory in directories.values { stamps += directory.pending.map(\.stamp) }
    for file in files.values { stamps += file.pending.map(\.stamp) }
    return stamps.sorted()
  }

  /// How many changes were not synced.
  var unsyncedChanges: Int {
    directories.values.reduce(0) { $0 + $1.pending.count }
      + files.values.reduce(0) { $0 + $1.pending.count }
  }

  /// Starts the machine after a power cut.
  mutating func reboot(_ survival: Survival) -> InjectionCounts {
    var decider = SurvivalDecider(survival, stamps: unsyncedStamps)
    for node in directories.keys.sorted() { directories[node]?.settle(&decider) }
    let nodes = files.keys.sorted()
    for node in nodes {
      var donor: FileNode?
      if decider.leavesStaleBlocks {
        let donors = nodes.filter { $0 != node }
        donor = donors.isEmpty ? nil : files[donors[decider.choice(below: donors.count)]]
      }
      files[node]?.settle(&decider) {
        donor?.staleSector() ?? [UInt8](repeating: 0xe5, count: FileNode.sectorBytes)
      }
    }
    sweep(keeping: [])
    boots += 1
    return decider.counts
  }

  /// Drops nodes that have no name in any view, except those that are open.
  mutating func sweep(keeping open: Set<Int>) {
    var reached: Set<Int> = [Self.root]
    var waiting = [Self.root] + open
    reached.formUnion(open)
    while let node = waiting.popLast() {
      for child in directories[node]?.reachable ?? [] where reached.insert(child).inserted {
        waiting.append(child)
      }
    }
    for node in files.keys where !reached.contains(node) { files[node] = nil }
    for node in directories.keys where !reached.contains(node) { directories[node] = nil }
  }

  /// Sixteen bytes that change with every boot.
  var bootIdentifier: [UInt8] {
    var generator = SeededGenerator(seed: identity &+ UInt64(boots) &* 0x9e37_79b9_7f4a_7c15)
    return generator.bytes(16)
  }
}

extension FileNode {
  /// Bytes that a block which used to belong to this file might still hold.
  func staleSector() -> [UInt8] {
    let sectors = max(1, durable.length / Self.sectorBytes)
    let start = (sectors / 2) * Self.sectorBytes
    return durable.read(start..<(start + Self.sectorBytes))
  }
}
