import Tidemark
import TidemarkCollections

/// A fact about a contact, under the name that it has in JSON.
enum ContactField: String, CaseIterable, Sendable {
  case name, isFavourite, group, email, stars
}

/// A program of one version: what it does with the contacts of a store.
protocol ContactProgram: Sendable {
  var version: Int { get }
  var fields: Set<ContactField> { get }
  func create(_ id: String, _ values: [ContactField: String]) async throws
  /// - Returns: false where this program cannot read the contact.
  func set(_ field: ContactField, of id: String, to value: String) async throws -> Bool
  func shown() throws -> ShownContacts
  /// What is wrong with queries and indexes; nil for nothing.
  func wrongAnswer() throws -> String?
}

/// The contacts that a program can read, and the ids of the others.
struct ShownContacts: Equatable {
  var values: [String: [ContactField: String]] = [:]
  var unreadable: Set<String> = []
  /// First and last names, where the program knows them.
  var names: [String: [String]] = [:]
}

protocol ContactType: Codable, Identifiable, Sendable where ID == String {
  init(id: String, name: String, group: String)
  static var paths: [ContactField: any WritableKeyPath<Self, String> & Sendable] { get }
  static var byName: any KeyPath<Self, String> & Sendable { get }
  static var byStars: (any KeyPath<Self, Int> & Sendable)? { get }
  var parts: [String] { get }
}

extension ContactType {
  static var byStars: (any KeyPath<Self, Int> & Sendable)? { nil }
  var parts: [String] { [] }
}

struct ContactProgramOf<Contact: ContactType>: ContactProgram {
  let version: Int
  let contacts: ObjectCollection<Contact, String>

  init(_ version: Int, _ store: Store, _ schema: CollectionSchema<Contact>) throws {
    self.version = version
    contacts = try store.collection(Contact.self, named: "contacts", schema)
  }

  /// A program with a bug: what it writes lacks the fields that it does not know.
  init(dropping version: Int, _ store: Store, _ schema: CollectionSchema<Contact>) throws {
    self.version = version
    let json = CollectionCoding<Contact>.json
    contacts = try store.collection(
      Contact.self, named: "contacts",
      coding: CollectionCoding(encode: json.encode, decode: json.decode), schema
    ) { $0.id }
  }

  var fields: Set<ContactField> { Set(Contact.paths.keys) }

  func create(_ id: String, _ values: [ContactField: String]) async throws {
    var contact = Contact(id: id, name: "", group: values[.group] ?? "")
    for (field, path) in Contact.paths { contact[keyPath: path] = values[field] ?? "" }
    try await contacts.insert(contact)
  }

  func set(_ field: ContactField, of id: String, to value: String) async throws -> Bool {
    guard let path = Contact.paths[field] else { return false }
    do {
      return try await contacts.update(id) { $0[keyPath: path] = value } != nil
    } catch let error as TidemarkError where error.code == .coding {
      return false
    }
  }

  func shown() throws -> ShownContacts {
    var shown = ShownContacts()
    let list = try contacts.all(unreadable: { shown.unreadable.insert($0.object?.id ?? "?") })
    for contact in list {
      shown.values[contact.id] = Contact.paths.mapValues { contact[keyPath: $0] }
      shown.names[contact.id] = contact.parts
    }
    return shown
  }

  func wrongAnswer() throws -> String? {
    var unreadable: Set<String> = []
    func tell(_ error: TidemarkError) { unreadable.insert(error.object?.id ?? "?") }
    let all = try contacts.all(unreadable: tell)
    let outside = unreadable
    let path = Contact.byName
    for name in Set(all.map { $0[keyPath: path] }) {
      unreadable = []
      let found = try contacts.find(path == name, unreadable: tell)
      guard Set(found.map(\.id)) == Set(all.filter { $0[keyPath: path] == name }.map(\.id)) else {
        return "the index by name has not all of \(name)"
      }
      guard unreadable == outside else { return "a query does not tell of unreadable contacts" }
    }
    guard Set(try contacts.unindexed()) == outside else { return "other contacts are unindexed" }
    if let stars = Contact.byStars {
      let found = try contacts.find(stars >= 3, unreadable: tell)
      guard Set(found.map(\.id)) == Set(all.filter { $0[keyPath: stars] >= 3 }.map(\.id)) else {
        return "the index by stars has not all"
      }
    }
    guard try contacts.count() == all.count + outside.count else { return "the count is wrong" }
    return outside.isEmpty ? try contacts.core.firstDisagreement() : nil
  }
}

extension Store {
  /// The program of a version over this store.
  func contactProgram(_ version: Int) throws -> any ContactProgram {
    switch version {
    case 1: try ContactProgramOf(1, self, Contact1.schema)
    case 2: try ContactProgramOf(2, self, Contact2.schema)
    case 3: try ContactProgramOf(3, self, Contact3.schema)
    case 4, 5: try ContactProgramOf(version, self, Contact4.schema)
    default: try ContactProgramOf(6, self, Contact6.schema)
    }
  }
}

// MARK: Values as texts

extension Bool {
  fileprivate var text: String {
    get { self ? "true" : "false" }
    set { self = newValue == "true" }
  }
}

extension Int {
  fileprivate var text: String {
    get { "\(self)" }
    set { self = Int(newValue) ?? 0 }
  }
}

extension String? {
  fileprivate var text: String {
    get { self ?? "" }
    set { self = newValue.isEmpty ? nil : newValue }
  }
}

extension Contact1.Group {
  fileprivate var text: String {
    get { rawValue }
    set { self = Self(rawValue: newValue) ?? .friend }
  }
}

extension Contact1.Contact: ContactType {
  init(id: String, name: String, group: String) {
    self.init(id: id, name: name, isFavourite: false, group: .init(rawValue: group) ?? .friend)
  }
  static var paths: [ContactField: any WritableKeyPath<Self, String> & Sendable] {
    [.name: \.name, .isFavourite: \.isFavourite.text, .group: \.group.text]
  }
  static var byName: any KeyPath<Self, String> & Sendable { \Self.name }
}

extension Contact2.Contact: ContactType {
  init(id: String, name: String, group: String) {
    self.init(id: id, name: name, group: .init(rawValue: group) ?? .friend)
  }
  static var paths: [ContactField: any WritableKeyPath<Self, String> & Sendable] {
    [
      .name: \.name, .isFavourite: \.isFavourite.text, .group: \.group.text, .email: \.email.text,
      .stars: \.stars.text,
    ]
  }
  static var byName: any KeyPath<Self, String> & Sendable { \Self.name }
}

extension Contact3.Contact: ContactType {
  init(id: String, name: String, group: String) {
    self.init(id: id, name: name, group: .init(rawValue: group))
  }
  static var paths: [ContactField: any WritableKeyPath<Self, String> & Sendable] {
    [
      .name: \.name, .isFavourite: \.isFavourite.text, .group: \.group.rawValue,
      .email: \.mailAddress.text, .stars: \.stars.text,
    ]
  }
  static var byName: any KeyPath<Self, String> & Sendable { \Self.name }
}

extension Contact4.Contact: ContactType {
  init(id: String, name: String, group: String) {
    self.init(id: id, name: name, group: .init(rawValue: group))
  }
  static var paths: [ContactField: any WritableKeyPath<Self, String> & Sendable] {
    [
      .name: \.name, .group: \.group.rawValue, .email: \.mailAddress.text, .stars: \.stars.text,
    ]
  }
  static var byName: any KeyPath<Self, String> & Sendable { \Self.name }
  static var byStars: (any KeyPath<Self, Int> & Sendable)? { \Self.stars }
}

extension Contact6.Contact: ContactType {
  init(id: String, name: String, group: String) {
    self.init(id: id, first: name, last: "", group: .init(rawValue: group))
  }
  /// The name; one that is set is split at its last space, as only this version can say it.
  fileprivate var wholeName: String {
    get { name }
    set {
      let words = newValue.split(separator: " ").map(String.init)
      (first, last) = (words.dropLast().joined(separator: " "), words.last ?? "")
    }
  }
  static var paths: [ContactField: any WritableKeyPath<Self, String> & Sendable] {
    [
      .name: \.wholeName, .group: \.group.rawValue, .email: \.mailAddress.text,
      .stars: \.stars.text,
    ]
  }
  static var byName: any KeyPath<Self, String> & Sendable { \Self.name }
  static var byStars: (any KeyPath<Self, Int> & Sendable)? { \Self.stars }
  var parts: [String] { [first, last] }
}
