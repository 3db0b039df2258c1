// The order of search results: each word counts by how rare it is, titles count more than text, and
// guides stand above reference pages, proofs and the changelog. A page need not hold every word of a question.

// Words by which people look for a page, the words of other libraries among them.
const ASKED_AS = {
  accounting:
    "accountant, RDP, PLD, moments accountant, noise multiplier, calibrate noise, privacy loss distribution, "
    + "epsilon of DP-SGD",
  accuracy:
    "how accurate, benchmark, cost of privacy, utility, Adult, SUPPORT2, AUC against epsilon, sample size, "
    + "how many patients",
  audits: "audit, test the guarantee, canaries, lower bound on epsilon",
  budget:
    "budget refused, BudgetExceededError, budget exceeded, remaining budget, total epsilon, composition, refit every year, "
    + "yearly update, several models, ledger, "
    + "exhausted, used up, spent, nothing fits",
  choosing:
    "which algorithm, classifier, compare estimators, multiclass, small data set, best model, logistic "
    + "regression, SVM",
  defaults: "default parameters, data_norm, alpha, batch size, learning rate, clipping norm",
  developing: "own estimator, custom estimator, custom loss, extend, plugin, check_private_estimator",
  encodings: "one-hot, binning, splines, feature engineering, nonlinear effects",
  errata: "errors in papers, corrections",
  evaluation:
    "AUC, ROC curve, accuracy, test score, confidence interval, confusion matrix, calibration slope, Brier "
    + "score, fairness by group, subgroups, performance, "
    + "calibration plot, how good is the model",
  faq:
    "frequently asked questions, which epsilon, choose epsilon, what does epsilon mean, what is delta, "
    + "anonymous, GDPR, sample size, how many patients, random forest, save a model, several hospitals, "
    + "XGBoost, share a model with another hospital, what is public, public information, what is not covered",
  glossary: "definitions, terms, meaning, what is differential privacy, epsilon, delta, adjacency, sensitivity, mu, what does it mean",
  images: "X-ray, scans, pixels, convolution, transfer learning",
  inspection:
    "feature importance, explain the model, interpret, interpretability, odds ratio, coefficients, SHAP, "
    + "partial dependence, shape functions, nomogram, "
    + "forest plot, publish coefficients",
  ledger_server: "several hospitals, several machines, shared budget, database, PostgreSQL, cluster",
  membership: "membership inference, attack, re-identification, was a patient in the table",
  migrate:
    "GPU, diffprivlib, Opacus, OpenDP, TensorFlow Privacy, scikit-learn, alternatives, comparison, other "
    + "libraries, upgrade, old pickles",
  model_selection:
    "hyperparameter tuning, grid search, GridSearchCV, RandomizedSearchCV, cross validation, regularisation "
    + "strength, tune",
  networks: "neural network, deep learning, MLP, hidden layers, PyTorch, Opacus",
  odds_ratios:
    "odds ratio, confidence interval, p-value, statsmodels, Logit, summary, significance, significant, standard error, "
    + "Wald test, hypothesis test, effect sizes, forest plot, logistic regression coefficients, inference, Bonferroni",
  pate:
    "random forest, gradient boosting, teacher ensemble, knowledge transfer, semi-supervised, "
    + "XGBoost, LightGBM, trees, any model",
  patients:
    "several rows per patient, repeated visits, repeated measurements, longitudinal, groups, clusters, "
    + "patient id, user-level privacy, duplicates",
  pitfalls:
    "mistakes, data leakage, StandardScaler, SelectKBest, SMOTE, random_state, seed, common errors, "
    + "reproducible results",
  policy: "versions, deprecation, stable, support",
  preprocessing:
    "set bounds, missing values, impute, imputation, NaN, date column, dates, timestamp, bounds, minimum and maximum, "
    + "outliers, scaling, StandardScaler, MinMaxScaler, standardise, normalise, categorical variables, one-hot "
    + "encoding, OneHotEncoder, dummy variables, ColumnTransformer, PCA, "
    + "handle NaN, pandas, polars, scikit-learn pipeline, dates of admission, DateColumn",
  privacy_statement:
    "ethics board, IRB, data protection officer, GDPR, report, what is public, what is not covered, "
    + "assumptions, documentation",
  probabilities:
    "calibration, calibrated probabilities, CalibratedClassifierCV, reliability curve, risk scores, "
    + "overconfident, "
    + "calibration plot, reliability diagram",
  publishing_performance:
    "publish a test score, publish AUC, report accuracy, held-out rows, leak through scores, "
    + "calibration plot, reliability diagram, table by sex, HTML",
  pure: "delta zero, delta=0, pure differential privacy, Laplace mechanism",
  rare_outcomes:
    "imbalanced classes, imbalance, class weight, class_weight, SMOTE, oversampling, undersampling, rare "
    + "events, prevalence, "
    + "unbalanced data, unbalanced classes",
  regression:
    "length of stay, costs, linear regression, ridge, regressor, continuous target, counts, Poisson "
    + "regression, quantile regression, confidence interval of coefficients, "
    + "forest plot, effect sizes",
  scale:
    "out of memory, big data, large tables, Parquet, Dask, millions of rows, memory map, chunks, "
    + "memory error, polars",
  security:
    "threat model, attacker, what is not covered, floating point, random numbers, side channels, what is "
    + "public, "
    + "adversary, attacker, who, reproducible results, seed",
  speed: "run time, fast, benchmark, seconds, performance of code, compile",
  start_engineer:
    "scikit-learn pipeline, machine learning engineer, cross validation, DP-SGD, batches, speed, replace LogisticRegression",
  start_privacy:
    "privacy researcher, privacy officer, check a claim, verify epsilon, recompute, dp-accounting, read a ledger, "
    + "verify a statement, certified interval",
  start:
    "tutorial, quickstart, getting started, first steps, CSV file, example, save a model, load a model, "
    + "joblib, pickle, ONNX, deploy, install, "
    + "scikit-learn pipeline, hospital table",
  statistics:
    "table 1, mean, median, histogram, counts, quantiles, descriptive statistics, demographics, "
    + "count patients, groups, wards",
  text: "clinical notes, free text, TfidfVectorizer, HashingVectorizer, NLP, bag of words",
  troubleshoot:
    "error, warning, slow first fit, compile, numba, poor accuracy, budget refused, budget exceeded, random_state, seed, not "
    + "converged, problems, help, "
    + "budget exhausted, reproducible",
  variational: "Bayesian, posterior, uncertainty of predictions, predictive interval",
};

const PLACES = { title: 8, asked: 8, heading: 3, text: 1 };
const SHOWN = 30;
const REFERENCE = new Set(["accounting_speed", "benchmarks", "changelog", "code_of_conduct", "contributing", "design",
  "developing", "errata", "ledger_server_speed", "ledger_speed", "licence", "policy", "releasing", "reproductions",
  "search_gains", "security_policy"]);
const FOLDERS = { proofs: 0.3, generated: 0.15, api: 0.15, gallery: 0.7 };
const QUESTION_WORDS = new Set(["another", "can", "could", "do", "does", "get", "handle", "have", "how", "i", "me",
  "my", "need", "one",
  "per", "same", "should", "there", "use", "we", "what", "when", "where", "which", "who", "why", "you", "your"]);

const pageFactor = (name, stems) => {
  const folder = name.split("/")[0];
  if (folder === "proofs" && stems.some((stem) => ["proof", "prove", "theorem"].includes(stem))) return 2;
  return FOLDERS[folder] ?? (REFERENCE.has(name) ? 0.4 : 1);
};

const stemsOf = (text, stemmer) => new Set(splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word)));

// The words of each page by place, most important place first; made at the first search.
const placesOfWords = () => {
  const stemmer = new Stemmer();
  const pages = Search._index.docnames.map((name, page) => ({
    title: stemsOf(Search._index.titles[page], stemmer),
    asked: stemsOf(ASKED_AS[name] ?? "", stemmer),
    headings: [],
  }));
  for (const [heading, places] of Object.entries(Search._index.alltitles))
    for (const [page, id] of places)
      if (id !== null) pages[page].headings.push({ heading, id, stems: stemsOf(heading, stemmer) });
  return pages;
};

const rankPages = (stems) => {
  const index = Search._index;
  const pages = (Search._pages ??= placesOfWords());
  const inText = stems.map((stem) => new Set([index.terms[stem] ?? []].flat()));
  const rarity = inText.map((files) => Math.log(1 + index.docnames.length / (1 + files.size)));
  const most = rarity.reduce((sum, value) => sum + value, 0);
  return pages.flatMap((page, file) => {
    const best = { found: 0 };
    for (const heading of page.headings) {
      const found = stems.reduce((sum, stem, k) => sum + (heading.stems.has(stem) ? rarity[k] : 0), 0);
      if (found > best.found) Object.assign(best, heading, { found });
    }
    let [score, covered] = [0, 0];
    stems.forEach((stem, k) => {
      const place = page.title.has(stem) ? "title" : page.asked.has(stem) ? "asked"
        : best.stems?.has(stem) ? "heading" : inText[k].has(file) ? "text" : null;
      if (place === null) return;
      covered += rarity[k];
      score += PLACES[place] * rarity[k];
    });
    if (score === 0) return [];
    const title = index.titles[file];
    const [shown, anchor] = 2 * best.found > most ? [`${title} > ${best.heading}`, `#${best.id}`] : [title, ""];
    const total = score * (covered / most) ** 2 * pageFactor(index.docnames[file], stems);
    return [[index.docnames[file], shown, anchor, null, total, index.filenames[file], SearchResultKind.text]];
  });
};

Search._performSearch = (query, searchTerms, excludedTerms, highlightTerms, objectTerms) => {
  _removeChildren(document.getElementById("search-progress"));
  const asked = [...objectTerms].filter((word) => !QUESTION_WORDS.has(word) && !stopwords.has(word));
  const stemmer = new Stemmer();
  const stems = [...new Set(asked.map((word) => stemmer.stemWord(word)))];
  const objects = asked.length === 1 ? Search.performObjectSearch(asked[0], objectTerms) : [];
  objects.forEach((item) => (item[4] = item[1].split(".").pop().toLowerCase() === asked[0] ? 1e3 : 0));
  return [...rankPages(stems), ...objects].sort(_orderResultsByScoreThenName).slice(-SHOWN); // the last is shown first
};
