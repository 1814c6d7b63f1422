// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"), .strictMemorySafety(),
  .treatAllWarnings(as: .error),
]

// Programs over typed collections: `Tools/Examples/notes`, `packages` and `ledger` beside this file
// build and run them. The tests of the package above build the same sources, without `apps`.
let package = Package(
  name: "examples",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "tidemark", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    .target(
      name: "CollectionExamples",
      dependencies: [
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkFoundation", package: "tidemark"),
      ],
      path: "collections", swiftSettings: strict),
    .target(
      name: "RestExample",
      dependencies: [
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkHTTP", package: "tidemark"),
        .product(name: "TidemarkREST", package: "tidemark"),
      ],
      path: "rest", exclude: ["server.py"], swiftSettings: strict),
    .target(
      name: "ExamplePrograms",
      dependencies: [
        "CollectionExamples", "RestExample",
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkSync", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "programs", swiftSettings: strict),
    .executableTarget(name: "notes", dependencies: ["ExamplePrograms"], path: "apps/notes"),
    .executableTarget(name: "packages", dependencies: ["ExamplePrograms"], path: "apps/packages"),
    .executableTarget(name: "ledger", dependencies: ["ExamplePrograms"], path: "apps/ledger"),
  ],
  swiftLanguageModes: [.v6]
)
